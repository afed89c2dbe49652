// What happened, in the words of the library. Problems stay until they are closed.

import { dismiss, useStudio } from '../store/state';

export function Notices() {
  const notices = useStudio((state) => state.notices);
  return (
    <div className="notices" aria-live="polite">
      {notices.map(({ key, kind, text, action }) => (
        <div className={`notice ${kind}`} key={key} data-testid="notice">
          <span>{text}</span>
          {action && <button type="button" onClick={() => { action.run(); dismiss(key); }}>{action.title}</button>}
          <button type="button" className="close" aria-label="Close" onClick={() => dismiss(key)}>×</button>
        </div>
      ))}
    </div>
  );
}
