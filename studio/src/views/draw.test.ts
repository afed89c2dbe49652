import { describe, expect, it } from 'vitest';
import { letterSize } from './draw';

describe('numbers in the cells of a picture', () => {
  it('stand in large cells', () => {
    expect(letterSize({ wide: 38, high: 38 }, 1)).toBeCloseTo(11.2, 1);
    expect(letterSize({ wide: 20, high: 38 }, 1)).toBeNull();
  });
  it('are left out where the page is so small that nobody could read them', () => {
    expect(letterSize({ wide: 38, high: 38 }, 0.5)).not.toBeNull();
    expect(letterSize({ wide: 38, high: 38 }, 0.4)).toBeNull();
  });
});
