// Layout, axes and sliders: which slice of a tensor a view shows.

import { axisNames, chooseAxis, firstSlice, layoutsOf, moveSlider, sliderAxes, type Layout, type Slice } from './axes';

export interface Look {
  layout: Layout;
  slice: Slice;
}

interface Props {
  shape: readonly number[];
  look: Look;
  onChange: (look: Look) => void;
  compact?: boolean;
}

const LABELS: Record<Layout, string> = { NHWC: 'NHWC', NCHW: 'NCHW', filter: 'filter', axes: 'axes' };

export function AxisControls({ shape, look, onChange, compact = false }: Props) {
  const { layout, slice } = look;
  const names = axisNames(shape, layout);
  const layouts = layoutsOf(shape.length);
  const sliders = sliderAxes(shape, slice);
  // On the block only what one needs to see every cell; the panel has the rest.
  const choose = !compact && layout === 'axes' && shape.length > 1;
  if (sliders.length === 0 && layouts.length < 2 && !choose) return null;
  return (
    <div className="v-axes nodrag">
      {layouts.length > 1 && !compact && (
        <span className="v-switch" role="group" aria-label="layout">
          {layouts.map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === layout}
              onClick={() => onChange({ layout: name, slice: firstSlice(shape, name, slice.at) })}
            >
              {LABELS[name]}
            </button>
          ))}
        </span>
      )}
      {choose &&
        (['rows', 'cols'] as const).map((which) => (
          <label key={which}>
            {which === 'rows' ? 'rows' : 'columns'}
            <select
              value={slice[which] ?? 0}
              onChange={(event) => onChange({ layout, slice: chooseAxis(slice, which, Number(event.target.value)) })}
            >
              {shape.map((size, axis) => (
                <option key={axis} value={axis}>{`axis ${axis} (${size})`}</option>
              ))}
            </select>
          </label>
        ))}
      {sliders.map((axis) => {
        const last = (shape[axis] ?? 1) - 1;
        const at = slice.at[axis] ?? 0;
        return (
          <label key={axis} className="v-slider">
            <span>{names[axis]}</span>
            <input
              type="range"
              min={0}
              max={last}
              value={at}
              aria-label={names[axis]}
              onChange={(event) => onChange({ layout, slice: moveSlider(slice, axis, Number(event.target.value)) })}
            />
            <output>{`${at} / ${last}`}</output>
          </label>
        );
      })}
    </div>
  );
}
