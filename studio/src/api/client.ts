// The one door to the server: every request carries the token of the address, every error is one line of text.

import { type CheckJson, checkOf, type ProgressJson, progressOf } from './answers';
import type {
  Explanation, Exported, Fits, Health, Imported, Language, Page, Start, Tensor, TensorData, TensorRef, Trace, Wire,
} from './types';

/** What the server refused, in its words; status 0 when nobody answered. */
export class ApiError extends Error {
  constructor(message: string, readonly status: number) {
    super(message);
  }
}

const KEY = 'convgrad-token';

/** The token of the address; a reload without it finds the one of this tab. */
export function tokenOf(search: string, kept: Pick<Storage, 'getItem' | 'setItem'>): string {
  const given = new URLSearchParams(search).get('token');
  if (given) kept.setItem(KEY, given);
  return given ?? kept.getItem(KEY) ?? '';
}

let token: string | null = null;

async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  token ??= tokenOf(window.location.search, window.sessionStorage);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { ...init.headers, 'X-Convgrad-Token': token } });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError('the server does not answer', 0);
  }
  if (response.ok) return response;
  let said = `the server answered ${response.status}`;
  try {
    const body = (await response.json()) as { error?: unknown };
    if (typeof body.error === 'string') said = body.error;
  } catch {
    // Not JSON: the status says what there is to say.
  }
  throw new ApiError(said, response.status);
}

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await ask(path, signal ? { signal } : {})).json()) as T;
}

async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } };
  return (await (await ask(path, signal ? { ...init, signal } : init)).json()) as T;
}

const at = encodeURIComponent;

export const api = {
  start: () => get<Start>('api/start'),
  health: () => get<Health>('api/health', AbortSignal.timeout(3000)),
  check: async (page: Page, signal?: AbortSignal) => checkOf(await post<CheckJson>('api/check', { page }, signal)),
  fits: (page: Page, wire: Wire) => post<Fits>('api/fits', { page, wire }),
  run: (page: Page, steps: number, until: string | null) =>
    post<{ run: string }>('api/run', { page, steps, until, seed_values: {} }),
  progress: async (run: string, since: number, signal?: AbortSignal) =>
    progressOf(await get<ProgressJson>(`api/run/${at(run)}?since=${since}`, signal)),
  cancel: (run: string) => post<unknown>(`api/run/${at(run)}/cancel`, {}),
  trace: (run: string, block: string, pin: string, index: number[], signal?: AbortSignal) =>
    post<Trace>(`api/run/${at(run)}/trace`, { block, pin, index }, signal),
  explain: (page: Page, block: string) => post<Explanation>('api/explain', { page, block }),
  export: (page: Page, language: Language) => post<Exported>('api/export', { page, language }),
  import: (name: string, data: string, dat: string | null) => post<Imported>('api/import', { name, data, dat }),
  gallery: (name: string) => get<Page>(`api/gallery/${at(name)}`),
  save: (page: Page) => post<{ saved: string }>('api/save', { page }),
  feed: (name: string, data: string) => post<{ tensor: Tensor }>('api/feed', { name, data }),

  /** A result in full. */
  async tensor(where: TensorRef, signal?: AbortSignal): Promise<TensorData> {
    const path = `api/run/${at(where.run)}/tensor?block=${at(where.block)}&pin=${at(where.pin)}`;
    const response = await ask(path, signal ? { signal } : {});
    const shape = (response.headers.get('X-Shape') ?? '').split(',').filter((s) => s.trim()).map(Number);
    const values = new Float32Array(await response.arrayBuffer());
    return { shape, dtype: response.headers.get('X-Dtype') ?? '', values };
  },
};
