// The canvas as others see it: zoom, fit, and the point of a page under a point of the screen.

import type { ReactFlowInstance } from '@xyflow/react';

let flow: ReactFlowInstance | null = null;
export function setFlow(instance: ReactFlowInstance): void {
  flow = instance;
}

export const fitAll = (): void => void flow?.fitView({ padding: 0.12, maxZoom: 1, duration: 150 });
export const zoomIn = (): void => void flow?.zoomIn({ duration: 100 });
export const zoomOut = (): void => void flow?.zoomOut({ duration: 100 });
export const zoomReset = (): void => void flow?.zoomTo(1, { duration: 100 });

export function pagePoint(x: number, y: number): [number, number] {
  const point = flow?.screenToFlowPosition({ x, y }) ?? { x, y };
  return [point.x, point.y];
}

/** A place for a new block near the middle of what is seen, beside blocks that are there. */
export function freePlace(taken: readonly [number, number][]): [number, number] {
  const box = document.querySelector('.react-flow')?.getBoundingClientRect();
  const [x, y] = box ? pagePoint(box.left + box.width * 0.4, box.top + box.height * 0.35) : [80, 80];
  let place: [number, number] = [x, y];
  while (taken.some(([left, top]) => Math.abs(left - place[0]) < 24 && Math.abs(top - place[1]) < 24))
    place = [place[0] + 32, place[1] + 32];
  return place;
}

/** Bring a block into view. */
export const showBlock = (id: string): void =>
  void flow?.fitView({ nodes: [{ id }], maxZoom: Math.min(1, flow.getZoom()), minZoom: flow.getZoom(), duration: 150 });
