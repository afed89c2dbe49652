// What happened, in the words of the library. Problems stay until they are closed.

import { dismiss, useStudio } from '../store/state';

export function Notices() {
  const notices = useStudio((state) => state.notices);
  return (
    <div className="notices" aria-live="polite">
      {notices.map(({ key, kind, text, actions }) => (
        <div className={`notice ${kind}${actions.length > 1 ? ' several' : ''}`} key={key} data-testid="notice">
          <span>{text}</span>
          {actions.map(({ title, run }) => <button type="button" key={title} onClick={() => { run(); dismiss(key); }}>{title}</button>)}
          <button type="button" className="close" aria-label="Close" onClick={() => dismiss(key)}>×</button>
        </div>
      ))}
    </div>
  );
}
