// The text on a pin `attrs`, such as `data_format_ = NHWC; dilations_ = {1,1,1,1}`. The form edits one value and
// leaves every other character as it was typed.

export interface Attribute {
  name: string;
  value: string;
  /** Where the value stands in the text. */
  start: number;
  end: number;
}

/** Find `name = value` parts; what is none is passed over. Braces and quotes hide a `;`. */
export function attributes(text: string): Attribute[] {
  const found: Attribute[] = [];
  let start = 0;
  let depth = 0;
  let quoted = false;
  for (let i = 0; i <= text.length; i++) {
    const letter = text[i];
    if (letter === '"') quoted = !quoted;
    else if (!quoted && letter === '{') depth++;
    else if (!quoted && letter === '}') depth = Math.max(0, depth - 1);
    if (letter !== undefined && (letter !== ';' || depth || quoted)) continue;
    const part = text.slice(start, i);
    const match = /^(\s*)([A-Za-z_]\w*)(\s*=[^\S\n]*)/.exec(part);
    if (match?.[2]) {
      const from = start + match[0].length;
      const value = part.slice(match[0].length).trimEnd();
      found.push({ name: match[2], value, start: from, end: from + value.length });
    }
    start = i + 1;
  }
  return found;
}

/** The value of an attribute; undefined where the text does not have it. */
export function attribute(text: string, name: string): string | undefined {
  return attributes(text).find((each) => each.name === name)?.value;
}

/** Write one value into the text; a name that is not there yet is put at the end. */
export function withAttribute(text: string, name: string, value: string): string {
  const found = attributes(text).find((each) => each.name === name);
  if (found) return text.slice(0, found.start) + value + text.slice(found.end);
  const before = text.trimEnd();
  const between = !before ? '' : before.endsWith(';') ? ' ' : '; ';
  return `${before}${between}${name} = ${value}`;
}

/** Take one attribute out of the text, with the `;` that belongs to it. */
export function withoutAttribute(text: string, name: string): string {
  const found = attributes(text).find((each) => each.name === name);
  if (!found) return text;
  const start = Math.max(text.lastIndexOf(';', text.lastIndexOf(name, found.start)) + 1, 0);
  const next = text.indexOf(';', found.end);
  if (next >= 0) return text.slice(0, start) + text.slice(next + 1).replace(/^\s+/, start ? ' ' : '');
  return text.slice(0, Math.max(0, start - 1)).trimEnd();
}
