import { WORKFLOW_MAX_BYTES } from '../../lambdas/workflow/parse-workflow.ts';

/** Repeats a part up to the maximum file size. */
function filled(head: string, part: (index: number) => string, tail = ''): string {
  let text = head;
  for (let index = 0; text.length + part(index).length + tail.length < WORKFLOW_MAX_BYTES; index += 1)
    text += part(index);
  return text + tail;
}

const times = (count: number, part: (index: number) => string, between = '\n') =>
  Array.from({ length: count }, (_, index) => part(index)).join(between);

const STEPS = 'name: a\nsteps:\n';
const ONE_STEP = 'name: a\nsteps:\n  - id: a\n    tool: transform\n';
const withText = (text: string) => `${ONE_STEP}    with: { a: "${text}" }\n`;

/** Files that once took seconds or minutes to parse, or exhausted the stack. */
export const HOSTILE_WORKFLOWS: readonly (readonly [what: string, text: string])[] = [
  [
    'aliases of aliases',
    `a: &a [x, x]\n${times(30, (i) => `b${i}: &b${i} [*${i ? `b${i - 1}` : 'a'}, *${i ? `b${i - 1}` : 'a'}]`)}\n`,
  ],
  ['many aliases', filled('x: &x 1\ny: [', () => '*x,', '1]\n')],
  [
    'a large value by many aliases',
    `x: &x {${times(2_000, (i) => `k${i}: 1`, ',')}}\n${STEPS}${times(90, (i) => `  - {id: s${i}, tool: transform, with: *x}`)}`,
  ],
  ['aliases of nothing', filled('y: [', (i) => `*x${i},`, '1]\n')],
  ['anchors', filled('', (i) => `a${i}: &n${i} 1\n`)],
  ['merges', filled('x: &x {a: 1}\ny:\n', () => '  <<: *x\n')],
  ['unknown names', filled(ONE_STEP, (i) => `u${i}: 1\n`)],
  ['some unknown names', `${ONE_STEP}${times(5_000, (i) => `    u${i}: 1`)}\n`],
  ['unknown tools', filled(STEPS, (i) => `  - {id: a${i}, tool: x${i}}\n`)],
  ['a thousand unknown tools', `${STEPS}${times(1_000, (i) => `  - {id: a${i}, tool: x${i}}`)}\n`],
  ['steps called the same', `${STEPS}${times(3_000, () => '  - {id: a, tool: transform}')}\n`],
  [
    'needs of strangers',
    `${STEPS}${times(100, (i) => `  - {id: s${i}, tool: transform, needs: [${'zz, '.repeat(90)}z]}`)}\n`,
  ],
  ['more needs than may be', `${ONE_STEP}    needs: [${times(9_000, (i) => `u${i}`, ',')}]\n`],
  [
    'a circle of a thousand',
    `${STEPS}${times(1_000, (i) => `  - {id: s${i}, tool: transform, needs: [s${(i + 1) % 1_000}]}`)}\n`,
  ],
  ['lists in lists', `name: ${'['.repeat(100_000)}${']'.repeat(100_000)}`],
  ['maps in maps', `${ONE_STEP}    with: ${'{a: '.repeat(20_000)}1${'}'.repeat(20_000)}`],
  ['deep indentation', `${times(600, (i) => `${' '.repeat(i)}a:`)} 1`],
  ['items in items', `${'- '.repeat(100_000)}a`],
  ['keys in keys', '? '.repeat(120_000)],
  ['values of nothing', ': '.repeat(120_000)],
  ['a long name', `${'x'.repeat(250_000)}: 1\n`],
  ['long names', filled('', (i) => `${'x'.repeat(1_000)}${i}: 1\n`)],
  ['the same name again', filled('', () => 'a: 1\n')],
  ['the same name a few thousand times', `${ONE_STEP}${times(8_000, () => 'a: 1')}\n`],
  ['quotes', '"'.repeat(250_000)],
  ['commas', `a: [${','.repeat(250_000)}]`],
  ['mistakes', filled('', () => '@\n')],
  ['documents', filled('', () => '---\na\n')],
  ['comments', filled('', () => '#x\n')],
  ['tags', filled('', (i) => `- !!t${i} 1\n`)],
  ['expressions that are never closed', withText('{%'.repeat(120_000))],
  ['an expression of dots', withText(`{% ${'a.'.repeat(100_000)}b %}`)],
  ['an expression of brackets', withText(`{% ${'('.repeat(100_000)} %}`)],
  [
    'expressions of stars, as long as they may be',
    `${STEPS}${times(60, (i) => `  - {id: s${i}, tool: transform, with: {a: "{% ${'*.'.repeat(1_990)}a %}"}}`)}\n`,
  ],
  ['an expression that is a chain', withText(`{% ${'a&'.repeat(1_990)}b %}`)],
  [
    'outputs that hand on others twice, from a model',
    `${STEPS}  - {id: t0, tool: model.invoke, with: {prompt: x}}\n${times(60, (i) => `  - {id: t${i + 1}, tool: transform, with: {a: "{% steps.t${i}.output.a & steps.t${i}.output.b %}", b: "{% steps.t${i}.output.b & steps.t${i}.output.a %}"}}`)}\n  - {id: z, tool: slack.message.post, with: {channel: "{% steps.t60.output.a %}", text: x}}\n`,
  ],
  ['expressions of unknown names', `${ONE_STEP}    with:\n${times(5_000, (i) => `      k${i}: "{% x${i} %}"`)}\n`],
];
