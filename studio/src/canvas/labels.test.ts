import { describe, expect, it } from 'vitest';
import { labelPlace } from './labels';

describe('the label of a wire', () => {
  it('stands beside the pin it comes from, the same for every wire of that pin', () => {
    const first = labelPlace('float 1×4×4×2', [240, 50], [360, 10], false);
    expect(first).toEqual({ x: 250, y: 47, anchor: 'start' });
    expect(labelPlace('float 1×4×4×2', [240, 50], [600, 900], false)).toEqual(first);
  });
  it('of an item of a list stands where the wire ends', () => {
    expect(labelPlace('[1] float 3', [240, 50], [400, 10], true)).toEqual({ x: 390, y: 7, anchor: 'end' });
  });
  it('is left out where a block would cut it', () => {
    expect(labelPlace('float 1×4×4×2', [240, 50], [300, 10], false)).toBeNull();
    expect(labelPlace('', [240, 50], [600, 10], false)).toBeNull();
  });
  it('is kept for a wire that leads back', () => {
    expect(labelPlace('float 3', [240, 50], [0, 10], false)).not.toBeNull();
  });
});
