import { Component, type ReactNode } from 'react';
import { problemText } from '../data/api.ts';

/** An error in one page leaves the rest of the console usable. */
export class PageBoundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: undefined };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children;
    return (
      <div className="empty-state" role="alert">
        <h1>This page failed</h1>
        <p>{problemText(this.state.error)}</p>
        <button type="button" className="bar-button" onClick={() => location.reload()}>
          Reload the page
        </button>
      </div>
    );
  }
}
