// Drawn by hand, 16 by 16, in the colour of the text.

const PATHS = {
  logo: 'M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z',
  new: 'M4 1.5h5l3 3v10H4zM9 1.5v3h3',
  open: 'M1.5 13V3.5h4l1.5 2h6V8M1.5 13l2.5-5h10.5L12 13z',
  save: 'M2.5 2.5h9l2 2v9h-11zM5 2.5v3.5h5V2.5M5 13.5V9.5h6v4',
  download: 'M8 2v8M4.5 7L8 10.5 11.5 7M2.5 13.5h11',
  undo: 'M5.5 3L2.5 6l3 3M2.5 6h7a4 4 0 010 8h-3',
  redo: 'M10.5 3l3 3-3 3M13.5 6h-7a4 4 0 000 8h3',
  play: 'M4.5 2.5v11l9-5.5z',
  stop: 'M3.5 3.5h9v9h-9z',
  sun: 'M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.5 1.5M11.5 11.5L13 13M13 3l-1.5 1.5M4.500 11.500L3 13',
  moon: 'M13 9.500A5.500 5.500 0 016.500 3 5.500 5.500 0 1013 9.500z',
  auto: 'M8 2a6 6 0 100 12A6 6 0 008 2zM8 2v12M8 5h4.500M8 8h6M8 11h4.500',
} as const;

export type IconName = keyof typeof PATHS;
const FILLED: IconName[] = ['play', 'stop', 'logo'];

export function Icon({ name }: { name: IconName }) {
  const fill = FILLED.includes(name) ? 'currentColor' : 'none';
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" fill={fill}
      stroke={fill === 'none' ? 'currentColor' : 'none'} strokeWidth="1.4" strokeLinecap="round" strokeLinejoin="round">
      <path d={PATHS[name]} />
    </svg>
  );
}
