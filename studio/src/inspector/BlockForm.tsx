// The form of one block. It edits the same texts that stand on the block.

import type { AttributeRow, Block, PaletteRow, SettingRow } from '../api/types';
import { Field } from '../canvas/Field';
import { isTensor, textOf } from '../format';
import { ARRAYS, feed, pickFiles, tensorPin } from '../shell/files';
import { setText } from '../store/actions';
import { attribute, withAttribute, withoutAttribute } from '../store/attrs';
import { pinOf } from '../store/page';
import { failed } from '../store/server';
import { useStudio } from '../store/state';

interface ChoiceProps {
  value: string;
  choices: string[];
  label: string;
  testid: string;
  /** What no choice at all means. */
  none?: string;
  onChange: (value: string) => void;
}

/** A select that keeps a text it does not know. */
function Choice({ value, choices, label, testid, none, onChange }: ChoiceProps) {
  const unknown = value !== '' && !choices.includes(value);
  return (
    <select value={value} aria-label={label} data-testid={testid} onChange={(event) => onChange(event.target.value)}>
      {(none !== undefined || value === '') && <option value="">{none ?? ''}</option>}
      {unknown && <option value={value}>{value}</option>}
      {choices.map((choice) => <option key={choice}>{choice}</option>)}
    </select>
  );
}

function Setting({ block, row }: { block: Block; row: SettingRow }) {
  const value = pinOf(block, row.name);
  const dtypes = useStudio((state) => state.dtypes);
  const choices = row.choices ?? (row.kind === 'type' ? dtypes : null);
  const testid = `form-${block.id}-${row.name}`;
  return (
    <label className="form-row">
      <span title={row.kind}>{row.name}</span>
      {choices && !isTensor(value)
        ? <Choice value={textOf(value)} choices={choices} label={row.name} testid={testid} onChange={(text) => setText(block.id, row.name, text)} />
        : <Field id={block.id} pin={row.name} value={value} testid={testid} hint={row.default} />}
    </label>
  );
}

const CHOICES = new Map([['bool', ['true', 'false']]]);

function AttributeField({ block, row }: { block: Block; row: AttributeRow }) {
  const text = textOf(pinOf(block, 'attrs'));
  const value = attribute(text, row.name) ?? '';
  const dtypes = useStudio((state) => state.dtypes);
  const choices = row.choices ?? CHOICES.get(row.kind) ?? (row.kind === 'type' ? dtypes : null);
  const testid = `attr-${block.id}-${row.name}`;
  const change = (next: string) =>
    setText(block.id, 'attrs', next === '' ? withoutAttribute(text, row.name) : withAttribute(text, row.name, next));
  return (
    <label className="form-row">
      <span title={row.kind}>{row.name}</span>
      {choices
        ? <Choice value={value} choices={choices} label={row.name} testid={testid} none={row.default ? `${row.default} (default)` : ''} onChange={change} />
        : <input className="field" value={value} placeholder={row.default} aria-label={row.name} data-testid={testid} spellCheck={false} onChange={(event) => change(event.target.value)} />}
    </label>
  );
}

function FileButton({ block, row }: { block: Block; row: PaletteRow }) {
  const pin = tensorPin(row);
  if (pin === null) return null;
  const pick = () => pickFiles(ARRAYS, ([file]) => void (file && feed(file, block.id).catch(failed)));
  return <button type="button" className="tool" data-testid={`feed-${block.id}`} onClick={pick}>Numbers from a file (.npy, .npz, .png)…</button>;
}

export function BlockForm({ block, row }: { block: Block; row: PaletteRow | undefined }) {
  if (!row) return <p className="problem">No block is called {block.type}.</p>;
  return (
    <>
      {row.settings.filter((setting) => setting.name !== 'attrs').map((setting) => <Setting key={setting.name} block={block} row={setting} />)}
      {row.attributes.length > 0 && <h3>Attributes</h3>}
      {row.attributes.map((each) => <AttributeField key={each.name} block={block} row={each} />)}
      <FileButton block={block} row={row} />
    </>
  );
}
