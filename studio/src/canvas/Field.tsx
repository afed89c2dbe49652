// A text on a pin, exactly as it is typed.

import type { ChangeEvent } from 'react';
import type { PinValue } from '../api/types';
import { dtypeText, isTensor, shapeText, textOf } from '../format';
import { setText } from '../store/actions';

interface Props {
  id: string;
  pin: string;
  value: PinValue | undefined;
  hint?: string;
  testid: string;
}

export function Field({ id, pin, value, hint, testid }: Props) {
  if (isTensor(value))
    return (
      <span className="tensor-chip nodrag" data-testid={testid}>
        {dtypeText(value.dtype)} {shapeText(value.shape)}
        <button type="button" title="Put a text here instead" onClick={() => setText(id, pin, '')}>×</button>
      </span>
    );
  const text = textOf(value);
  const props = {
    className: 'field nodrag nopan', value: text, title: text, spellCheck: false, autoComplete: 'off',
    'aria-label': `${pin} of ${id}`, 'data-testid': testid, placeholder: hint ?? '',
    onChange: (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => setText(id, pin, event.target.value),
  };
  return text.includes('\n') ? <textarea rows={3} {...props} /> : <input {...props} />;
}
