// The keyboard: one table of commands. The help panel is this table.

export type Command =
  | 'undo' | 'redo' | 'selectAll' | 'delete' | 'duplicate' | 'save' | 'open' | 'new' | 'run' | 'runUntil' | 'cancel'
  | 'search' | 'connect' | 'rename' | 'fit' | 'zoomIn' | 'zoomOut' | 'zoomReset' | 'help' | 'escape' | 'gallery'
  | 'left' | 'right' | 'up' | 'down' | 'farLeft' | 'farRight' | 'farUp' | 'farDown'
  | 'alignLeft' | 'alignRight' | 'alignTop' | 'alignBottom' | 'distributeAcross' | 'distributeDown' | 'inspect' | 'theme' | 'tidy';

export interface Key {
  command: Command;
  /** `Ctrl+Shift+z`: modifiers, then the key as the browser names it. Ctrl is Command on a Mac. */
  keys: string[];
  title: string;
  /** Also while a text is being edited. */
  inText?: true;
}

export const KEYS: Key[] = [
  { command: 'search', keys: ['/'], title: 'Search the palette (arrows, Enter adds)' },
  { command: 'connect', keys: ['c'], title: 'Connect an output: choose the input in a list' },
  { command: 'rename', keys: ['F2'], title: 'Rename the block' },
  { command: 'inspect', keys: ['Enter'], title: 'Edit the block in the inspector' },
  { command: 'delete', keys: ['Delete', 'Backspace'], title: 'Delete blocks and wires' },
  { command: 'duplicate', keys: ['Ctrl+d'], title: 'Duplicate' },
  { command: 'undo', keys: ['Ctrl+z'], title: 'Undo', inText: true },
  { command: 'redo', keys: ['Ctrl+Shift+z', 'Ctrl+y'], title: 'Redo', inText: true },
  { command: 'selectAll', keys: ['Ctrl+a'], title: 'Select everything' },
  { command: 'left', keys: ['ArrowLeft'], title: 'Move blocks by 8' },
  { command: 'right', keys: ['ArrowRight'], title: 'Move blocks by 8' },
  { command: 'up', keys: ['ArrowUp'], title: 'Move blocks by 8' },
  { command: 'down', keys: ['ArrowDown'], title: 'Move blocks by 8' },
  { command: 'farLeft', keys: ['Shift+ArrowLeft'], title: 'Move blocks by 64' },
  { command: 'farRight', keys: ['Shift+ArrowRight'], title: 'Move blocks by 64' },
  { command: 'farUp', keys: ['Shift+ArrowUp'], title: 'Move blocks by 64' },
  { command: 'farDown', keys: ['Shift+ArrowDown'], title: 'Move blocks by 64' },
  { command: 'alignLeft', keys: ['Ctrl+Shift+ArrowLeft'], title: 'Align left edges' },
  { command: 'alignRight', keys: ['Ctrl+Shift+ArrowRight'], title: 'Align right edges' },
  { command: 'alignTop', keys: ['Ctrl+Shift+ArrowUp'], title: 'Align top edges' },
  { command: 'alignBottom', keys: ['Ctrl+Shift+ArrowDown'], title: 'Align bottom edges' },
  { command: 'distributeAcross', keys: ['Alt+Shift+h'], title: 'Distribute across' },
  { command: 'distributeDown', keys: ['Alt+Shift+v'], title: 'Distribute down' },
  { command: 'tidy', keys: ['l'], title: 'Lay the page out anew' },
  { command: 'run', keys: ['Ctrl+Enter'], title: 'Run the page', inText: true },
  { command: 'runUntil', keys: ['Ctrl+Shift+Enter'], title: 'Run up to the block chosen', inText: true },
  { command: 'cancel', keys: ['Ctrl+.'], title: 'Cancel the run', inText: true },
  { command: 'save', keys: ['Ctrl+s'], title: 'Save', inText: true },
  { command: 'open', keys: ['Ctrl+o'], title: 'Open a file', inText: true },
  { command: 'new', keys: ['Alt+n'], title: 'New page' },
  { command: 'gallery', keys: ['g'], title: 'Gallery' },
  { command: 'fit', keys: ['f'], title: 'Show the whole page' },
  { command: 'zoomIn', keys: ['+', '='], title: 'Zoom in' },
  { command: 'zoomOut', keys: ['-'], title: 'Zoom out' },
  { command: 'zoomReset', keys: ['0'], title: 'Zoom to 100 %' },
  { command: 'theme', keys: ['t'], title: 'Light, dark or as the system' },
  { command: 'help', keys: ['?'], title: 'These keys' },
  { command: 'escape', keys: ['Escape'], title: 'Leave a field, a panel, a selection', inText: true },
];

export interface Press {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
  altKey: boolean;
}

/** Name a key press as the table does. Shift is part of a sign such as `?`, not a modifier of it. */
export function nameOf(press: Press): string {
  const sign = press.key.length === 1 && press.key.toLowerCase() === press.key.toUpperCase();
  const key = press.key.length === 1 ? press.key.toLowerCase() : press.key;
  const shift = press.shiftKey && !sign;
  return `${press.ctrlKey || press.metaKey ? 'Ctrl+' : ''}${press.altKey ? 'Alt+' : ''}${shift ? 'Shift+' : ''}${key}`;
}

const TABLE = new Map(KEYS.flatMap((row) => row.keys.map((key) => [key, row])));

/** The command of a key press; `inText` while a field has the focus, where letters are letters. */
export function commandOf(press: Press, inText: boolean): Command | null {
  const row = TABLE.get(nameOf(press));
  return row && (!inText || row.inText) ? row.command : null;
}
