import type { Log } from '../../../lambdas/entry/ports.ts';

export interface LogLine {
  level: 'info' | 'warn' | 'error';
  message: string;
  details: Record<string, unknown>;
}

export class MemoryLog implements Log {
  readonly lines: LogLine[] = [];

  info(message: string, details: Record<string, unknown> = {}): void {
    this.lines.push({ level: 'info', message, details });
  }

  warn(message: string, details: Record<string, unknown> = {}): void {
    this.lines.push({ level: 'warn', message, details });
  }

  error(message: string, details: Record<string, unknown> = {}): void {
    this.lines.push({ level: 'error', message, details });
  }

  messages(level: LogLine['level']): string[] {
    return this.lines.filter((line) => line.level === level).map(({ message }) => message);
  }
}
