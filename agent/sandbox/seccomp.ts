/** Numbers of system calls: [x86_64, aarch64]. -1: the architecture does not have it. */
const CALLS = {
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  pidfd_getfd: [438, 438],
  kcmp: [312, 272],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  unshare: [272, 97],
  setns: [308, 268],
  open_by_handle_at: [304, 265],
  swapon: [167, 224],
  swapoff: [168, 225],
  reboot: [169, 142],
  acct: [163, 89],
  syslog: [103, 116],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  iopl: [172, -1],
  ioperm: [173, -1],
  modify_ldt: [154, -1],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  fanotify_init: [300, 262],
  mbind: [237, 235],
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  clone: [56, 220],
  clone3: [435, 435],
  ioctl: [16, 29],
  socket: [41, 198],
} as const satisfies Record<string, readonly [number, number]>;
type Call = keyof typeof CALLS;

/** No ordinary command uses these: in a strict filter they end the process, which is reported as a violation. */
const ATTACKS: readonly Call[] = [
  ...(['mount', 'umount2', 'pivot_root', 'open_tree', 'move_mount', 'fsopen', 'fsconfig', 'fsmount'] as const),
  ...(['fspick', 'mount_setattr', 'ptrace', 'process_vm_readv', 'process_vm_writev', 'pidfd_getfd'] as const),
  ...(['kexec_load', 'kexec_file_load', 'init_module', 'finit_module', 'delete_module', 'bpf'] as const),
  ...([
    'perf_event_open',
    'userfaultfd',
    'unshare',
    'setns',
    'open_by_handle_at',
    'swapon',
    'swapoff',
    'reboot',
  ] as const),
];

/** Programs try these and continue without them. */
const REFUSED: readonly Call[] = [
  ...(['chroot', 'kcmp', 'add_key', 'request_key', 'keyctl', 'acct', 'syslog', 'quotactl', 'quotactl_fd'] as const),
  ...(['settimeofday', 'clock_settime', 'sethostname', 'setdomainname', 'iopl', 'ioperm', 'modify_ldt'] as const),
  ...(['io_uring_setup', 'io_uring_enter', 'io_uring_register', 'fanotify_init', 'mbind', 'migrate_pages'] as const),
  'move_pages',
];

const ARCHITECTURES = {
  x64: { index: 0, audit: 0xc000003e },
  arm64: { index: 1, audit: 0xc00000b7 },
} as const;
export type SeccompArchitecture = keyof typeof ARCHITECTURES;

export const isSeccompArchitecture = (arch: string): arch is SeccompArchitecture => arch in ARCHITECTURES;

/** `default`: dangerous calls fail. `strict`: they end the process, and sockets are local ones only. */
export type SeccompFilter = 'default' | 'strict';

const RETURN = { allow: 0x7fff0000, killProcess: 0x80000000, error: 0x00050000 } as const;
const ERROR = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 } as const;
const failWith = (error: keyof typeof ERROR): number => RETURN.error | ERROR[error];

/** Classic BPF: load a word of the call, compare, return. */
const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN_VALUE = 0x06;
/** Offsets in `struct seccomp_data`. Of arguments the low half, which has all bits that are compared here. */
const OFFSET = { call: 0, architecture: 4, argument0: 16, argument1: 24 } as const;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

/** Calls of the x32 ABI have this bit, and would pass the comparisons. */
const X32_CALLS = 0x40000000;
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000;
/** Pushes characters into the input of a terminal. */
const TIOCSTI = 0x5412;
const AF_UNIX = 1;

/** The filter as bubblewrap reads it from a file descriptor: an array of `struct sock_filter`. */
export function seccompProgram(filter: SeccompFilter, architecture: SeccompArchitecture): Buffer {
  const { index, audit } = ARCHITECTURES[architecture];
  const attack = filter === 'strict' ? RETURN.killProcess : failWith('EPERM');
  const returns = (calls: readonly Call[], value: number): Instruction[] =>
    calls
      .map((call) => CALLS[call][index])
      .filter((number) => number >= 0)
      .flatMap((number) => [equal(number, 0, 1), end(value)]);
  return assemble([
    load(OFFSET.architecture),
    equal(audit, 1, 0),
    end(RETURN.killProcess),
    load(OFFSET.call),
    [JUMP_IF_AT_LEAST, 0, 1, X32_CALLS],
    end(failWith('ENOSYS')),
    ...returns(ATTACKS, attack),
    ...returns(REFUSED, failWith('EPERM')),
    // Its flags are behind a pointer, which a filter cannot read. The C library uses `clone` instead.
    ...returns(['clone3'], failWith('ENOSYS')),
    ...onArgument('clone', OFFSET.argument0, [JUMP_IF_ANY_BIT, 0, 1, NEW_NAMESPACES], attack),
    ...onArgument('ioctl', OFFSET.argument1, equal(TIOCSTI, 0, 1), failWith('EPERM')),
    ...(filter === 'strict'
      ? onArgument('socket', OFFSET.argument0, equal(AF_UNIX, 1, 0), failWith('EAFNOSUPPORT'))
      : []),
    end(RETURN.allow),
  ]);

  /** `test` jumps over the next instruction, which returns, or not. */
  function onArgument(call: Call, offset: number, test: Instruction, value: number): Instruction[] {
    return [equal(CALLS[call][index], 0, 4), load(offset), test, end(value), load(OFFSET.call)];
  }
}

const load = (offset: number): Instruction => [LOAD, 0, 0, offset];
const equal = (value: number, ifTrue: number, ifFalse: number): Instruction => [JUMP_IF_EQUAL, ifTrue, ifFalse, value];
const end = (value: number): Instruction => [RETURN_VALUE, 0, 0, value];

const INSTRUCTION_BYTES = 8;

function assemble(instructions: readonly Instruction[]): Buffer {
  const program = Buffer.alloc(instructions.length * INSTRUCTION_BYTES);
  instructions.forEach(([code, ifTrue, ifFalse, value], index) => {
    const at = index * INSTRUCTION_BYTES;
    program.writeUInt16LE(code, at);
    program.writeUInt8(ifTrue, at + 2);
    program.writeUInt8(ifFalse, at + 3);
    program.writeUInt32LE(value >>> 0, at + 4);
  });
  return program;
}
