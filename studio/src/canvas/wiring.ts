// Drawing wires: what may be dropped where is said while one drags.

import type { Connection, Edge, FinalConnectionState, OnConnectStartParams } from '@xyflow/react';
import type { Source, Target } from '../api/types';
import { connect } from '../store/actions';
import { refusal, targetsOf } from '../store/rules';
import { fits, fitsDragged, fitsNow } from '../store/server';
import { get, notify, set } from '../store/state';

const ASKED_AHEAD = 24;

function ends(connection: Connection | Edge): { from: Source; to: Target } {
  return {
    from: [connection.source, connection.sourceHandle ?? ''],
    to: [connection.target, connection.targetHandle ?? ''],
  };
}

function why(from: Source, to: Target): string | null {
  const { page, rows } = get();
  const no = refusal(page, rows, from, to);
  if (no !== null) return no;
  const answer = fitsNow(from, to);
  return answer?.fits === false ? (answer.why ?? 'this does not fit') : null;
}

/** Asked on every move over a pin. What the server has not said yet may be dropped, and is looked at then. */
export function isValid(connection: Connection | Edge): boolean {
  const { from, to } = ends(connection);
  const no = why(from, to);
  const { drag } = get();
  if (drag && drag.why !== no) set({ drag: { ...drag, why: no } });
  return no === null;
}

/** The pins nearest to where a wire starts are asked for at once, four at a time. */
export function onConnectStart(_: unknown, start: OnConnectStartParams): void {
  if (start.handleType !== 'source' || !start.nodeId || !start.handleId) return;
  const from: Source = [start.nodeId, start.handleId];
  set({ drag: { from, answers: new Map(), why: null } });
  const ahead = targetsOf(get().page, get().rows, from).slice(0, ASKED_AHEAD);
  const next = async (): Promise<void> => {
    const to = ahead.shift();
    if (!to || get().drag?.from !== from) return;
    await fitsDragged(to);
    await next();
  };
  for (let i = 0; i < 4; i++) void next();
}

export function onConnectEnd(_: unknown, end: FinalConnectionState): void {
  set({ drag: null });
  if (end.isValid !== false || !end.fromHandle || !end.toHandle) return;
  const [a, b] = [end.fromHandle, end.toHandle];
  if (a.type === b.type) {
    notify('problem', 'A wire goes from an output to an input.', undefined, true);
    return;
  }
  const [out, into] = a.type === 'source' ? [a, b] : [b, a];
  const no = why([out.nodeId, out.id ?? ''], [into.nodeId, into.id ?? '']);
  if (no !== null) notify('problem', `No wire from ${out.nodeId} to ${into.id} of ${into.nodeId}: ${no}`, undefined, true);
}

/** Add a wire if it fits; say why if it does not. */
export async function tryConnect(from: Source, to: Target): Promise<boolean> {
  const { page, rows } = get();
  let no = refusal(page, rows, from, to);
  if (no === null) {
    const answer = await fits(from, to);
    if (!answer.fits) no = answer.why ?? 'this does not fit';
  }
  if (no === null) connect(from, to);
  else notify('problem', `No wire from ${from[0]} to ${to[1]} of ${to[0]}: ${no}`, undefined, true);
  return no === null;
}

export function onConnect(connection: Connection): void {
  const { from, to } = ends(connection);
  void tryConnect(from, to);
}
