import { readFileSync } from 'node:fs';

/** The most memory that this process has had. On Linux `maxRSS` starts with the peak of the process that started it. */
export function peakMemoryMib(): number {
  if (process.platform !== 'linux') return Math.round(process.resourceUsage().maxRSS / 1024);
  const [, kib] = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Math.round(Number(kib) / 1024);
}
