import Button from '@cloudscape-design/components/button';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { useMe } from '../data/me.ts';
import { notify } from '../shell/notices.tsx';

interface Sample {
  file: string;
  text: string;
}

const SENT_AGAIN = 'The event was received before; no second run was started.';

/** On the local host: sends a signed sample webhook, as the external system would. */
export function SampleEvents() {
  const { data: me } = useMe();
  const [, go] = useLocation();
  const [isSending, setIsSending] = useState(false);
  const { data: samples = [] } = useQuery({
    queryKey: ['samples'],
    queryFn: readSamples,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const send = async ({ file, text }: Sample) => {
    setIsSending(true);
    const response = await fetch('/_local/samples', {
      method: 'POST',
      body: JSON.stringify({ file, tenant: me?.tenant }),
    });
    const { runIds = [], deduplicated, error } = await response.json();
    setIsSending(false);
    if (runIds[0] !== undefined) {
      if (deduplicated) notify('info', SENT_AGAIN, true);
      return go(`/runs/${runIds[0]}`);
    }
    notify('error', error ?? `${text}: no automation of this tenant starts a run for it.`);
  };
  const [first, ...others] = samples;
  if (!first) return null;
  return (
    <div className="buttons samples">
      <Button variant="primary" loading={isSending} onClick={() => send(first)}>
        {first.text}
      </Button>
      {others.map((sample) => (
        <Button key={sample.file} disabled={isSending} onClick={() => send(sample)}>
          {sample.text}
        </Button>
      ))}
    </div>
  );
}

/** A stage in AWS has no samples. */
async function readSamples(): Promise<Sample[]> {
  if (!/^(127\.0\.0\.1|localhost)$/.test(location.hostname)) return [];
  const response = await fetch('/_local/samples');
  return response.ok ? (await response.json()).samples : [];
}
