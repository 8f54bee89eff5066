import { type ReactNode, useId } from 'react';
import { Link, useLocation } from 'wouter';

/** A part of a page with its heading. */
export function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <section className="section" aria-labelledby={id}>
      <div className="section-head">
        <h2 id={id}>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  );
}

/** Names and values. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="facts-list">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Links to the parts of an area, above its pages. */
export function SubPages({ label, pages }: { label: string; pages: readonly { path: string; text: string }[] }) {
  const [path] = useLocation();
  const above = pages.filter((page) => path === page.path || path.startsWith(`${page.path}/`));
  const here = above.toSorted((a, b) => b.path.length - a.path.length)[0]?.path;
  return (
    <nav className="sub-pages" aria-label={label}>
      {pages.map(({ path, text }) => (
        <Link key={path} href={path} {...(here === path && { 'aria-current': 'page' })}>
          {text}
        </Link>
      ))}
    </nav>
  );
}
