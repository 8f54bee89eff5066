type Fields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** What the agent does, one line for each event. Values of secrets and output of commands are never logged. */
export interface AgentLog {
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
}

/** As JSON for collectors of logs, or as text for people. */
export function logTo(print: (line: string) => void, now: () => string, asJson: boolean): AgentLog {
  const write =
    (level: string) =>
    (message: string, fields: Fields = {}) => {
      if (asJson) {
        print(JSON.stringify({ at: now(), level, message, ...fields }));
        return;
      }
      const shown = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
      const details = shown.map(([name, value]) => `${name}=${value}`).join(' ');
      const mark = level === 'info' ? '' : `${level}: `;
      print(oneLine([now(), `${mark}${message}`, details].filter(Boolean).join('  ')));
    };
  return { info: write('info'), warn: write('warn'), error: write('error') };
}

/** Texts of others, like the reason of a cancel, cannot make lines of their own or control the terminal. */
const oneLine = (text: string): string =>
  text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u${character.codePointAt(0)?.toString(16).padStart(4, '0')}`,
  );
