import { useState } from 'react';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { type Issuer, leaveForIssuer } from './oidc.ts';
import { hereOrHome } from './session.ts';

/** Lets people choose where they sign in. The issuer asks who they are. */
export function SignInPage({ issuers, reason }: { issuers: readonly Issuer[]; reason?: string | undefined }) {
  const [problem, setProblem] = useState(reason);
  const signIn = (issuer: Issuer) =>
    leaveForIssuer(issuer, { returnTo: hereOrHome() }).catch((error: Error) => setProblem(error.message));
  return (
    <main className="sign-in">
      <h1>Countersign</h1>
      <p>Every automated write, countersigned.</p>
      {problem !== undefined && (
        <p role="alert" className="sign-in-problem">
          <UntrustedText text={problem} lines="many" />
        </p>
      )}
      {issuers.length === 0 && problem === undefined && (
        <p>
          This stage has no OIDC issuer, so nobody can sign in here. Add one to <code>issuers</code> in cdk.json and
          deploy.
        </p>
      )}
      {issuers.map((issuer) => (
        <button key={issuer.name} type="button" className="sign-in-button" onClick={() => signIn(issuer)}>
          Sign in to <UntrustedText text={issuer.name} />
          <small>
            <UntrustedText text={issuer.issuer} />
          </small>
        </button>
      ))}
    </main>
  );
}
