import { describe, expect, it } from 'vitest';
import { attribute, attributes, withAttribute, withoutAttribute } from './attrs';

const TEXT = 'data_format_ = NHWC;dilations_={1,1,1,1} ;  what is this ; use_cudnn_on_gpu_ = true;';

describe('reading', () => {
  it('finds names and values, and where they stand', () => {
    const found = attributes(TEXT);
    expect(found.map(({ name, value }) => [name, value])).toEqual([
      ['data_format_', 'NHWC'], ['dilations_', '{1,1,1,1}'], ['use_cudnn_on_gpu_', 'true'],
    ]);
    for (const { value, start, end } of found) expect(TEXT.slice(start, end)).toBe(value);
  });
  it('takes no `;` in braces or quotes for an end', () => {
    expect(attribute('dilations_ = {1;2;2;1}; seed_ = 3', 'dilations_')).toBe('{1;2;2;1}');
    expect(attribute('name_ = "a;b"; seed_ = 3', 'name_')).toBe('"a;b"');
    expect(attribute('', 'seed_')).toBeUndefined();
  });
});

describe('writing', () => {
  it('touches nothing but the value', () => {
    expect(withAttribute(TEXT, 'dilations_', '{1,2,2,1}')).toBe(TEXT.replace('{1,1,1,1}', '{1,2,2,1}'));
    expect(withAttribute(TEXT, 'data_format_', 'NCHW')).toBe(TEXT.replace('NHWC', 'NCHW'));
  });
  it('puts a new name at the end', () => {
    expect(withAttribute('', 'seed_', '1')).toBe('seed_ = 1');
    expect(withAttribute('a_ = 1', 'seed_', '2')).toBe('a_ = 1; seed_ = 2');
    expect(withAttribute('a_ = 1;', 'seed_', '2')).toBe('a_ = 1; seed_ = 2');
  });
  it('fills in a value that is missing', () => {
    expect(withAttribute('seed_ = ; b_ = 1', 'seed_', '7')).toBe('seed_ = 7 ; b_ = 1'.replace('7 ;', '7;'));
  });
});

describe('taking out', () => {
  it('leaves the others', () => {
    expect(withoutAttribute('a_ = 1; b_ = 2; c_ = 3', 'b_')).toBe('a_ = 1; c_ = 3');
    expect(withoutAttribute('a_ = 1; b_ = 2', 'b_')).toBe('a_ = 1');
    expect(withoutAttribute('a_ = 1; b_ = 2', 'a_')).toBe('b_ = 2');
    expect(withoutAttribute('a_ = {1;2}; b_ = 2', 'a_')).toBe('b_ = 2');
    expect(withoutAttribute('a_ = 1', 'x_')).toBe('a_ = 1');
    expect(withoutAttribute('seed2_ = 1; seed_ = 2', 'seed_')).toBe('seed2_ = 1');
  });
});
