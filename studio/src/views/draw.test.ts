import { describe, expect, it } from 'vitest';
import { letterSize } from './draw';

describe('numbers in the cells of a picture', () => {
  it('stand in large cells', () => {
    expect(letterSize({ wide: 38, high: 38 }, 1, 2)).toBe(14);
    expect(letterSize({ wide: 20, high: 38 }, 1, 2)).toBeNull();
  });
  it('are as large as the longest lets them', () => {
    expect(letterSize({ wide: 38, high: 38 }, 1, 5)).toBeCloseTo(11.3, 1);
    expect(letterSize({ wide: 38, high: 38 }, 1, 9)).toBe(9);
  });
  it('are left out where the page is so small that nobody could read them', () => {
    expect(letterSize({ wide: 38, high: 38 }, 0.5, 2)).not.toBeNull();
    expect(letterSize({ wide: 38, high: 38 }, 0.3, 2)).toBeNull();
  });
});
