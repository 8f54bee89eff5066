import { prefer, THEMES, type Theme, TIME_FORMATS, type TimeFormat, usePreferences } from '../parts/preferences.ts';

const TIME_LABELS: Record<TimeFormat, string> = { relative: '5m ago', local: 'Local time', utc: 'UTC' };
const THEME_LABELS: Record<Theme, string> = { system: 'System', light: 'Light', dark: 'Dark' };

/** One switch for every time on every page. */
export function TimeSwitch() {
  const { times } = usePreferences();
  return (
    <label className="switch">
      <span>Times</span>
      <select value={times} onChange={({ target }) => prefer({ times: target.value as TimeFormat })}>
        {TIME_FORMATS.map((format) => (
          <option key={format} value={format}>
            {TIME_LABELS[format]}
          </option>
        ))}
      </select>
    </label>
  );
}

export function ThemeSwitch() {
  const { theme } = usePreferences();
  return (
    <label className="switch">
      <span>Theme</span>
      <select value={theme} onChange={({ target }) => prefer({ theme: target.value as Theme })}>
        {THEMES.map((each) => (
          <option key={each} value={each}>
            {THEME_LABELS[each]}
          </option>
        ))}
      </select>
    </label>
  );
}
