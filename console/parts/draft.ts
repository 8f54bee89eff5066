import { useState } from 'react';
import { useMe } from '../data/me.ts';
import { draftKey } from '../sign-in/session.ts';

/**
 * State that survives a reload and a new sign-in of the same person in this tab: use it for everything that people type.
 * `clear` forgets it after it was sent.
 */
export function useDraft<Value>(name: string, initial: Value): [Value, (value: Value) => void, () => void] {
  const { data: me } = useMe();
  const key = draftKey(`${me?.tenant}.${me?.person}.${name}`);
  const [state, setState] = useState<{ key: string; value: Value }>({ key, value: stored(key, initial) });
  const value = state.key === key ? state.value : stored(key, initial);
  const save = (next: Value) => {
    sessionStorage.setItem(key, JSON.stringify(next));
    setState({ key, value: next });
  };
  const clear = () => {
    sessionStorage.removeItem(key);
    setState({ key, value: initial });
  };
  return [value, save, clear];
}

function stored<Value>(key: string, initial: Value): Value {
  const text = sessionStorage.getItem(key);
  return text === null ? initial : JSON.parse(text);
}
