import { describe, expect, it } from 'vitest';
import { commandOf, KEYS, nameOf } from './keys';

const press = (key: string, ...held: string[]) => ({
  key, ctrlKey: held.includes('Ctrl'), metaKey: held.includes('Meta'), shiftKey: held.includes('Shift'), altKey: held.includes('Alt'),
});

describe('keys', () => {
  it('are named with their modifiers', () => {
    expect(nameOf(press('Z', 'Ctrl', 'Shift'))).toBe('Ctrl+Shift+z');
    expect(nameOf(press('?', 'Shift'))).toBe('?');
    expect(nameOf(press('ArrowLeft', 'Shift'))).toBe('Shift+ArrowLeft');
  });
  it('mean commands, on a Mac too', () => {
    expect(commandOf(press('z', 'Ctrl'), false)).toBe('undo');
    expect(commandOf(press('z', 'Meta'), false)).toBe('undo');
    expect(commandOf(press('Z', 'Ctrl', 'Shift'), false)).toBe('redo');
    expect(commandOf(press('/'), false)).toBe('search');
    expect(commandOf(press('c'), false)).toBe('connect');
    expect(commandOf(press('q'), false)).toBeNull();
  });
  it('are letters while a text is edited', () => {
    for (const key of ['c', '/', 'f', 'Delete', 'Backspace', 'ArrowLeft']) expect(commandOf(press(key), true)).toBeNull();
    expect(commandOf(press('a', 'Ctrl'), true)).toBeNull();
    expect(commandOf(press('s', 'Ctrl'), true)).toBe('save');
    expect(commandOf(press('Escape'), true)).toBe('escape');
  });
  it('leave copy and paste to the browser', () => {
    for (const key of ['c', 'x', 'v']) expect(commandOf(press(key, 'Ctrl'), false)).toBeNull();
  });
  it('have one meaning each', () => {
    const all = KEYS.flatMap((row) => row.keys);
    expect(new Set(all).size).toBe(all.length);
  });
});
