import { type ReactNode, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { FLAGS } from '../../lambdas/run/settings/flags.ts';
import { useOfflineSince } from '../data/connection.ts';
import { useFlags } from '../data/flags.ts';
import { useInboxCount } from '../data/inbox.ts';
import { useMe } from '../data/me.ts';
import { PAGES, sectionOf } from '../pages.ts';
import { PointInTime } from '../parts/point-in-time.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { signOut } from '../sign-in/session.ts';
import { KeyboardHelp } from './keyboard-help.tsx';
import { Notices } from './notices.tsx';
import { ThemeSwitch, TimeSwitch } from './switches.tsx';

/** The frame of the console. Its parts are plain HTML: the components for it are half as large as the rest of a page. */
export function Shell({ isLocal, children }: { isLocal: boolean; children: ReactNode }) {
  const [isMenuOpen, setIsMenuOpen] = useState(false);
  const [path] = useLocation();
  return (
    <>
      <a className="skip-link" href="#content">
        Skip to the content
      </a>
      <header className="top-bar">
        <button
          type="button"
          className="menu-button"
          aria-expanded={isMenuOpen}
          aria-controls="navigation"
          onClick={() => setIsMenuOpen(!isMenuOpen)}
        >
          Menu
        </button>
        <Link href="/" className="brand">
          Countersign
        </Link>
        <InboxLink />
        <div className="top-bar-end">
          <TimeSwitch />
          <ThemeSwitch />
          <Person />
        </div>
      </header>
      <div className="frame">
        <nav
          id="navigation"
          aria-label="Pages"
          className={isMenuOpen ? 'navigation open' : 'navigation'}
          onClickCapture={() => setIsMenuOpen(false)}
        >
          <Navigation path={path} isLocal={isLocal} />
        </nav>
        <main id="content" tabIndex={-1}>
          <Offline />
          <SwitchedOff />
          <Notices />
          {children}
        </main>
      </div>
      <KeyboardHelp />
    </>
  );
}

function Navigation({ path, isLocal }: { path: string; isLocal: boolean }) {
  const shown = PAGES.filter(({ label }) => label !== undefined);
  const here = sectionOf(path);
  return (
    <>
      <ul>
        {shown.map(({ path: section, label }) => (
          <li key={section}>
            <Link href={section} {...(section === here && { 'aria-current': 'page' })}>
              {label}
            </Link>
          </li>
        ))}
      </ul>
      <ul>
        {isLocal && (
          <li>
            <a href="/_sim" target="_blank" rel="noreferrer">
              External systems (simulated)
            </a>
          </li>
        )}
        <li>
          <a href="/docs" target="_blank" rel="noreferrer">
            API documentation
          </a>
        </li>
      </ul>
    </>
  );
}

/** Above every page while the API does not respond. */
function Offline() {
  const since = useOfflineSince();
  return (
    <div role="status" className="offline">
      {since !== undefined && (
        <p>
          <strong>Offline.</strong> The API has not responded since <PointInTime at={new Date(since).toISOString()} />.
          What you see may be out of date. The page tries again every few seconds and continues by itself.
        </p>
      )}
    </div>
  );
}

/** Above every page while something that changes what runs do is switched off. */
function SwitchedOff() {
  const off = useFlags().filter(({ name, on }) => !on && FLAGS[name].affectsRuns);
  return (
    <div role="status" className="offline">
      {off.map(({ name, whenOff }) => (
        <p key={name}>
          <strong>{FLAGS[name].label}: switched off.</strong>{' '}
          {`${whenOff.charAt(0).toUpperCase()}${whenOff.slice(1)}. `}
          An owner or admin switches them on in the <Link href="/settings">settings</Link>; then runs continue by
          themselves.
        </p>
      ))}
    </div>
  );
}

function InboxLink() {
  const count = useInboxCount();
  const waits = count === 1 ? '1 thing waits for you' : `${count} things wait for you`;
  return (
    <Link href="/" className={count > 0 ? 'inbox-count waiting' : 'inbox-count'} aria-label={`Inbox: ${waits}`}>
      Inbox <span className="count">{count}</span>
    </Link>
  );
}

function Person() {
  const { data: me } = useMe();
  if (!me) return null;
  return (
    <div className="person">
      <span>
        <UntrustedText text={me.name ?? me.person} max={40} />
        <small>
          {me.role} of <UntrustedText text={me.tenant} max={40} />
        </small>
      </span>
      <button type="button" className="bar-button" onClick={() => signOut()}>
        Sign out
      </button>
    </div>
  );
}
