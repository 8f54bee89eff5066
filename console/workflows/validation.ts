import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { call, problemText } from '../data/api.ts';
import type { LineProblem } from '../parts/code-editor.tsx';

/** After the last key. */
const PAUSE_MS = 400;

interface Validation {
  /** Undefined while it is not known. */
  isValid: boolean | undefined;
  problems: readonly LineProblem[];
  state: string;
}

/** Checks a workflow file with the API while somebody types. Publishing checks it again. */
export function useValidation(text: string): Validation {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const { data, error } = useQuery({
    queryKey: ['validate', settled],
    queryFn: () => call('POST /api/v1/workflows/validate', { body: settled }),
    enabled: settled.trim() !== '',
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (text.trim() === '') return { isValid: undefined, problems: [], state: 'Write a workflow.' };
  if (error) return { isValid: undefined, problems: [], state: `Not checked: ${problemText(error)}` };
  if (text !== settled || !data) return { isValid: undefined, problems: [], state: 'Checking …' };
  const { length } = data.problems;
  return {
    isValid: data.valid,
    problems: data.problems.map(({ line, path, message }) => ({
      line,
      message: path === '' ? message : `${path}: ${message}`,
    })),
    state: data.valid ? 'The workflow is valid.' : length === 1 ? '1 problem:' : `${length} problems:`,
  };
}
