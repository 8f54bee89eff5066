import { useSyncExternalStore } from 'react';

export const TIME_FORMATS = ['relative', 'local', 'utc'] as const;
export type TimeFormat = (typeof TIME_FORMATS)[number];
export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

/** How this browser shows the console. Nothing here is secret. */
interface Preferences {
  times: TimeFormat;
  theme: Theme;
}

const KEY = 'countersign.preferences';
const DEFAULTS: Preferences = { times: 'relative', theme: 'system' };
const listeners = new Set<() => void>();
let preferences: Preferences = read();

function read(): Preferences {
  try {
    return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? '{}') };
  } catch {
    return DEFAULTS;
  }
}

export function prefer(change: Partial<Preferences>): void {
  preferences = { ...preferences, ...change };
  localStorage.setItem(KEY, JSON.stringify(preferences));
  applyTheme();
  for (const listener of listeners) listener();
}

export const usePreferences = (): Preferences =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => preferences,
  );

const prefersDark = matchMedia('(prefers-color-scheme: dark)');
prefersDark.addEventListener('change', applyTheme);

export function applyTheme(): void {
  const isDark = preferences.theme === 'dark' || (preferences.theme === 'system' && prefersDark.matches);
  document.body.classList.toggle('awsui-dark-mode', isDark);
}
