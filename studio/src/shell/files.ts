// Files in and out: pages, enuSpace's pages with their .dat, arrays and pictures for a pin.

import { ApiError, api } from '../api/client';
import type { Language, PaletteRow } from '../api/types';
import { download, fileName, pageText } from '../download';
import { addFromPalette, setTensor } from '../store/actions';
import { blockOf } from '../store/page';
import { failed } from '../store/server';
import { get, notify, openPage, set } from '../store/state';

export async function base64Of(file: Blob): Promise<string> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error('the file cannot be read'));
    reader.readAsDataURL(file);
  });
  return url.slice(url.indexOf(',') + 1);
}

const ending = (name: string): string => name.slice(name.lastIndexOf('.') + 1).toLowerCase();
const FEEDS = ['npy', 'npz', 'png'];
export const PAGES = '.json,.svg,.dat';
export const ARRAYS = '.npy,.npz,.png';

/** The pin of a block that takes a tensor: `val` of a Const, `value` of a Placeholder. */
export function tensorPin(row: PaletteRow | undefined): string | null {
  const pin = row?.settings.find((setting) => ['val', 'value'].includes(setting.name))
    ?? row?.settings.find((setting) => setting.kind === 'tensor');
  return pin?.name ?? null;
}

export async function feed(file: File, block: string): Promise<void> {
  const { page, rows } = get();
  const pin = tensorPin(rows.get(blockOf(page, block)?.type ?? ''));
  if (pin === null) {
    notify('problem', `${block} takes no numbers from a file: a Placeholder or a Const does.`);
    return;
  }
  const { tensor } = await api.feed(file.name, await base64Of(file));
  setTensor(block, pin, tensor);
}

/** Open what was dropped or picked: a page with its .dat, or arrays for a block (a new Const if on none). */
export async function openFiles(files: File[], where: { block: string | null; at: [number, number] } | null): Promise<void> {
  try {
    const page = files.find((file) => ['json', 'svg'].includes(ending(file.name)));
    if (page) {
      const dat = files.find((file) => ending(file.name) === 'dat');
      const answer = await api.import(page.name, await base64Of(page), dat ? await base64Of(dat) : null);
      openPage(answer.page, true);
      for (const note of answer.notes.slice(0, 4)) notify('info', note);
      return;
    }
    for (const file of files) {
      if (!FEEDS.includes(ending(file.name))) {
        notify('problem', `${file.name}: a page is .json or .svg (with its .dat), numbers are .npy, .npz or .png`);
        continue;
      }
      const constant = get().rows.get('Const');
      const block = where?.block ?? [...get().blocks][0] ?? (constant ? addFromPalette(constant, where?.at ?? [0, 0]) : null);
      if (block !== null) await feed(file, block);
    }
  } catch (error) {
    failed(error);
  }
}

export function pickFiles(accept: string, then: (files: File[]) => void): void {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = accept;
  input.multiple = true;
  input.style.display = 'none';
  input.dataset['testid'] = 'file-picker';
  input.onchange = () => {
    then([...(input.files ?? [])]);
    input.remove();
  };
  input.oncancel = () => input.remove();
  document.body.append(input);
  input.click();
}

export const pickPage = (): void => pickFiles(PAGES, (files) => void openFiles(files, null));

export function downloadPage(): void {
  const { page } = get();
  download(fileName(page.name), pageText(page));
  set({ saved: page });
}

/** Save to the file of the command line; without one, as a download. */
export async function savePage(): Promise<void> {
  const { page, file } = get();
  if (file === null) return downloadPage();
  try {
    const { saved } = await api.save(page);
    set({ saved: page });
    notify('info', `Saved to ${saved}.`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) downloadPage();
    else failed(error);
  }
}

export async function exportPage(language: Language): Promise<void> {
  try {
    set({ exported: await api.export(get().page, language), panel: 'export' });
  } catch (error) {
    failed(error);
  }
}

export async function openGallery(name: string): Promise<void> {
  try {
    openPage(await api.gallery(name), true);
    set({ panel: null });
  } catch (error) {
    failed(error);
  }
}
