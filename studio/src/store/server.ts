// The store's dealings with the server: checks behind every edit, runs, the connection lost and found.

import { ApiError, api } from '../api/client';
import type { BlockCheck, Fits, Page, RunProgress, Source, Summary, Target } from '../api/types';
import { sameMap } from '../table';
import { idsOf, sameMeaning } from './page';
import { partOf } from './partial';
import { targetKey } from './rules';
import { checked, get, notify, set, started } from './state';

export const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Show an error; a server that does not answer is waited for. */
export function failed(error: unknown): void {
  if (error instanceof DOMException && error.name === 'AbortError') return;
  if (error instanceof ApiError && error.status === 0) lost();
  else notify('problem', words(error));
}

let waiting = false;
async function lost(): Promise<void> {
  set({ online: false });
  if (waiting) return;
  waiting = true;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    try {
      await api.health();
      break;
    } catch (error) {
      // Somebody else on this port is no reason to hammer it, but the token may be right after the next restart.
      if (error instanceof ApiError && error.status === 403) await new Promise((resolve) => setTimeout(resolve, 4000));
    }
  }
  waiting = false;
  set((state) => ({ online: true, run: state.run?.state === 'running' ? null : state.run, resultsRun: null }));
  notify('info', 'The server is back; nothing was lost.');
  if (get().rows.size) api.start().then(started, failed);
  checkSoon();
}

// Checks. One request at a time: an edit while one is under way is sent when its answer is here, so the last one wins.
let asking = false;
let again = false;
let whole: ReturnType<typeof setTimeout> | undefined;
/** The page the answers in the store are of. */
let answered: Page | null = null;
/** How long the hands must rest before the whole page is checked: longer if the part checked was all there is to say. */
const REST_MS = { all: 300, near: 150 };

export function checkSoon(all = false): void {
  clearTimeout(whole);
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  void check(all).finally(() => {
    asking = false;
    considerRun();
  });
}

async function check(all: boolean): Promise<void> {
  for (let whollyAsked = all; ; whollyAsked = false) {
    again = false;
    const { page, online } = get();
    if (!online) return;
    const known = !whollyAsked && get().checks.size > 0;
    const part = known && answered ? partOf(page, answered) : null;
    try {
      const answer = await api.check(part?.page ?? page);
      if (sameMeaning(page, get().page)) {
        checked(part ? { ...answer, blocks: new Map([...kept(page), ...answer.blocks]), notes: get().pageNotes } : answer);
        // Until all of it is answered, the next edit is one of the page before.
        if (!part || part.all) answered = page;
        if (part) whole = setTimeout(() => checkSoon(true), part.all ? REST_MS.all : REST_MS.near);
      }
    } catch (error) {
      set({ checkMs: null });
      failed(error);
      return;
    }
    if (!again && sameMeaning(page, get().page)) return;
  }
}

/** What was said of the blocks that are still there. */
function kept(page: Page): [string, BlockCheck][] {
  const ids = idsOf(page);
  return [...get().checks].filter(([id]) => ids.has(id));
}

/** Whether a wire fits, remembered as long as the page means the same. */
let fitPage: Page | null = null;
const fitAnswers = new Map<string, Promise<Fits>>();
const fitSettled = new Map<string, Fits>();
export function fits(from: Source, to: Target): Promise<Fits> {
  const { page } = get();
  if (!fitPage || !sameMeaning(fitPage, page)) {
    fitAnswers.clear();
    fitSettled.clear();
  }
  fitPage = page;
  const key = JSON.stringify([from, to]);
  let answer = fitAnswers.get(key);
  if (!answer) {
    answer = api.fits(page, { from, to }).catch((error: unknown) => {
      fitAnswers.delete(key);
      failed(error);
      return { fits: true, why: null };
    });
    fitAnswers.set(key, answer);
    void answer.then((settled) => fitAnswers.get(key) === answer && fitSettled.set(key, settled));
  }
  return answer;
}

/** What is known of a wire at once; what is not is asked for. */
export function fitsNow(from: Source, to: Target): Fits | undefined {
  void fits(from, to);
  return fitSettled.get(JSON.stringify([from, to]));
}

/** Ask for a pin of the wire being drawn and keep the answer beside it. */
export async function fitsDragged(to: Target): Promise<void> {
  const from = get().drag?.from;
  if (!from || get().drag?.answers.has(targetKey(to))) return;
  const answer = await fits(from, to);
  set(({ drag }) => (drag?.from === from ? { drag: { ...drag, answers: new Map(drag.answers).set(targetKey(to), answer) } } : {}));
}

// Runs.
let lastRun: Page | null = null;

export async function startRun(until: string | null = null): Promise<void> {
  const { page, steps, run } = get();
  lastRun = page;
  try {
    if (run?.state === 'running') await api.cancel(run.id);
    const { run: id } = await api.run(page, steps, until);
    set({ run: { id, state: 'running', step: 0, steps, block: null, done: 0, total: 0, problem: null } });
    await follow(id, page);
  } catch (error) {
    failed(error);
  }
}

/** Results of the run before are shown until there is something to show instead, so that quick runs do not flicker. */
const PATIENCE_MS = 400;

async function follow(id: string, page: Page): Promise<void> {
  let since = 0;
  const start = Date.now();
  while (get().run?.id === id) {
    const progress = await api.progress(id, since);
    if (get().run?.id !== id) return;
    since = progress.version;
    const show = progress.state !== 'running' || (Date.now() - start > PATIENCE_MS && progress.results.size > 0);
    took(id, progress, show ? page : null);
    if (progress.state !== 'running') return;
  }
}

const sameSummary = (a: Summary, b: Summary): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Take in the progress of a run, and its results if they are to be shown; results that are the same stay the same objects. */
function took(id: string, progress: RunProgress, page: Page | null): void {
  const { state, step, steps, block, done, total, problem } = progress;
  set((now) => {
    const run = { id, state, step, steps, block, done, total, problem };
    if (!page) return { run };
    const results = new Map<string, ReadonlyMap<string, Summary>>();
    for (const [name, pins] of progress.results) {
      const before = now.results.get(name);
      results.set(name, before && sameMap(before, pins, sameSummary) ? before : pins);
    }
    const anew = now.resultsRun === id ? {} : { resultsRun: id, ranPage: page, highlight: [], hovered: null, picked: null };
    return { run, results, curves: progress.curves, times: progress.ms, ...anew };
  });
  if (problem && state === 'failed') notify('problem', problem);
}

export function cancelRun(): void {
  const { run } = get();
  if (run?.state === 'running') api.cancel(run.id).catch(failed);
}

let soon: ReturnType<typeof setTimeout> | undefined;
/** With automatic runs on, run a page that has changed and has no problem. */
export function considerRun(): void {
  clearTimeout(soon);
  const { autoRun, page, checks, online } = get();
  if (!autoRun || !online || !page.blocks.length || (lastRun && sameMeaning(lastRun, page))) return;
  if ([...checks.values()].some((check) => check.problem)) return;
  soon = setTimeout(() => void startRun(), 200);
}
