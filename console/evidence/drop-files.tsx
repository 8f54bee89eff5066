import Alert from '@cloudscape-design/components/alert';
import Button from '@cloudscape-design/components/button';
import { type DragEvent, useRef, useState } from 'react';
import { problemText } from '../data/api.ts';
import { CommandLine } from '../parts/copyable.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { heldFilesIn } from './held-files.ts';
import { Report } from './report.tsx';
import { usePublishedKeys, useVerifier } from './use-verifier.ts';
import type { Verified } from './verifier.ts';

/** Verifies files that somebody drops or chooses, in the browser: they are not sent anywhere. */
export function DropFiles() {
  const keys = usePublishedKeys();
  const verifier = useVerifier();
  const field = useRef<HTMLInputElement>(null);
  const [isOver, setIsOver] = useState(false);
  const [result, setResult] = useState<{ name: string; verified: Verified }>();
  const [problem, setProblem] = useState<string>();
  const isReady = verifier.data !== undefined && !keys.isPending;
  const verify = async (files: readonly File[]) => {
    setResult(undefined);
    setProblem(undefined);
    try {
      const read = files.map(async (file) => ({ name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) }));
      const held = heldFilesIn(await Promise.all(read), keys.data);
      if (!verifier.data) throw new Error('the verifier is not loaded yet; try again in a moment');
      setResult({ name: held.name, verified: await verifier.data.verify(held) });
    } catch (error) {
      setProblem(problemText(error));
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setIsOver(false);
    void verify([...event.dataTransfer.files]);
  };
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same with the keyboard */}
      <div
        className={isOver ? 'drop-zone over' : 'drop-zone'}
        onDragOver={(event) => {
          event.preventDefault();
          setIsOver(true);
        }}
        onDragLeave={() => setIsOver(false)}
        onDrop={drop}
      >
        <p>
          Drop a bundle (<code>.json</code>) with its signature (<code>.dsse.json</code>) here, with its addenda if it
          has some. The files stay on this computer.
        </p>
        <input
          ref={field}
          type="file"
          multiple
          hidden
          aria-label="Files to verify"
          accept=".json,.pem"
          onChange={({ target }) => {
            void verify([...(target.files ?? [])]);
            target.value = '';
          }}
        />
        <Button loading={!isReady} onClick={() => field.current?.click()}>
          Choose files to verify
        </Button>
        <p className="secondary">
          {keys.data === undefined
            ? 'The keys of this stage could not be loaded: add a .pem file with the key that you trust.'
            : 'Signatures are checked with the keys that this stage publishes. To trust only your own copy, add its .pem or keys file.'}
        </p>
        <div className="on-command-line">
          On the command line: <CommandLine command="countersign evidence verify FILE.json --key keys.json" />
        </div>
      </div>
      {problem !== undefined && (
        <Alert type="error" header="This cannot be verified">
          <UntrustedText text={problem} max={1_000} />
        </Alert>
      )}
      {result && <Report name={result.name} verified={result.verified} />}
    </>
  );
}
