import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { Suspense, useEffect, useSyncExternalStore } from 'react';
import { Route, Switch, useLocation } from 'wouter';
import { ApiError } from '../client/api-client.ts';
import { followCommits } from './data/live.ts';
import { PAGES } from './pages.ts';
import { clearNotices } from './shell/notices.tsx';
import { PageBoundary } from './shell/page-boundary.tsx';
import { Shell } from './shell/shell.tsx';
import { ExpiredDialog } from './sign-in/expired-dialog.tsx';
import { currentSession, onSessionChange } from './sign-in/session.ts';
import { SignInPage } from './sign-in/sign-in-page.tsx';

const RETRIES_MAX = 2;

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // A refusal stays a refusal; a lost response may not.
      retry: (count, error) => count < RETRIES_MAX && !(error instanceof ApiError && error.status < 500),
      staleTime: 1_000,
    },
  },
});

export function App() {
  const session = useSyncExternalStore(onSessionChange, currentSession);
  if (session.state === 'starting') return <p className="starting">Signing in …</p>;
  if (session.state === 'signed_out') return <SignInPage issuers={session.issuers} reason={session.reason} />;
  return (
    <QueryClientProvider client={queries}>
      <Shell isLocal={session.tokens.issuer.issuer === `${location.origin}/_oidc`}>
        <Pages />
      </Shell>
      {session.state === 'signed_in' && <FollowCommits />}
      {session.state === 'expired' && <ExpiredDialog />}
    </QueryClientProvider>
  );
}

/** Without anything to see. */
function FollowCommits() {
  useEffect(() => followCommits(queries), []);
  return null;
}

function Pages() {
  const [path] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: notices belong to the page that caused them
  useEffect(clearNotices, [path]);
  return (
    <PageBoundary key={path}>
      <Suspense fallback={<p className="starting">Loading …</p>}>
        <Switch>
          {PAGES.map(({ path: pattern, Component }) => (
            <Route key={pattern} path={pattern}>
              {(params) => <Component {...(params as Record<string, string>)} />}
            </Route>
          ))}
          <Route>
            <NoSuchPage />
          </Route>
        </Switch>
      </Suspense>
    </PageBoundary>
  );
}

function NoSuchPage() {
  return (
    <div className="empty-state">
      <h1>There is no such page</h1>
      <p>
        The address may be mistyped. <a href="/">Go to your inbox</a> or <a href="/runs">to the runs</a>.
      </p>
    </div>
  );
}
