// A page out of a text that nobody has checked: the clipboard's, or a draft of another version. Everything that is drawn
// must be what it claims to be, or the studio would fail on it; what the page means is for the server to say.

import type { Page } from '../api/types';
import { emptyPage } from './page';

type Fields = Readonly<Record<string, unknown>>;

const isText = (value: unknown): value is string => typeof value === 'string';
const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);
const isListOf = (value: unknown, is: (item: unknown) => boolean): boolean => Array.isArray(value) && value.every(is);
const orNone = (is: (value: unknown) => boolean) => (value: unknown): boolean => value === undefined || is(value);

const isItem = (value: unknown): boolean => isNumber(value) || isText(value) || typeof value === 'boolean';
const isPlace = (value: unknown): boolean => isListOf(value, isNumber) && (value as unknown[]).length === 2;

/** A tensor, or a text with a type. */
function isPinValue(value: unknown): boolean {
  if (isText(value)) return true;
  if (!isFields(value)) return false;
  if (!Object.hasOwn(value, 'dtype')) return isText(value['text']) && isText(value['type']);
  const data = orNone((list) => isListOf(list, isItem))(value['data']);
  return isText(value['dtype']) && isListOf(value['shape'], isNumber) && data && orNone(isText)(value['base64']);
}

function isBlock(value: unknown): boolean {
  if (!isFields(value) || !isText(value['id']) || !isText(value['type'])) return false;
  const pins = value['pins'];
  const good = pins === undefined || (isFields(pins) && Object.values(pins).every(isPinValue));
  return good && orNone(isPlace)(value['at']) && orNone(isText)(value['task']);
}

/** The end of a wire: block, pin, and at a source the item of a list. */
function isEnd(value: unknown, most: number): boolean {
  if (!Array.isArray(value) || value.length < 2 || value.length > most) return false;
  return isText(value[0]) && isText(value[1]) && orNone(isNumber)(value[2]);
}

const isWire = (value: unknown): boolean => isFields(value) && isEnd(value['from'], 3) && isEnd(value['to'], 2);

/** Read a page from a text; null for any other text. */
export function pageOfText(text: string): Page | null {
  if (!text.includes('convgrad-page')) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isFields(value) || value['format'] !== 'convgrad-page' || value['version'] !== 1) return null;
  if (!orNone(isText)(value['name']) || !orNone(isText)(value['dialect']) || !orNone(isPlace)(value['size'])) return null;
  if (!isListOf(value['blocks'], isBlock)) return null;
  if (!orNone((wires) => isListOf(wires, isWire))(value['wires'])) return null;
  return { ...emptyPage(), ...(value as Partial<Page>) };
}
