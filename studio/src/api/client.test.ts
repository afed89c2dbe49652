import { expect, it } from 'vitest';
import { FakeStorage } from '../store/samples';
import { tokenOf } from './client';

it('takes the token of the address and keeps it for a reload', () => {
  const kept = new FakeStorage();
  expect(tokenOf('', kept)).toBe('');
  expect(tokenOf('?token=abc', kept)).toBe('abc');
  expect(tokenOf('', kept)).toBe('abc');
  expect(tokenOf('?token=new', kept)).toBe('new');
});
