import { fieldsOf, textOf } from '../exchange.ts';
import { html, type SafeHtml } from '../page/html.ts';
import { textIn } from './block-limits.ts';
import { toInput } from './modal-inputs.ts';
import { mrkdwn } from './mrkdwn.ts';
import { type Block, type SlackMessage, type SlackView, USERS } from './workspace.ts';

/** A message as the page shows it, with its replies below. */
export function messageCard(message: SlackMessage, replies: readonly SlackMessage[]): SafeHtml {
  return html`<article class="message" id="${placeOf(message.channel, message.ts)}">
    <div class="avatar" aria-hidden="true">C</div>
    <div class="content">
      <p class="byline"><strong>countersign</strong> <span class="tag">app</span> ${time(message.ts)}${message.edited && html` <span class="quiet">(edited)</span>`}${message.ephemeral_for && html` <span class="tag">only ${nameOf(message.ephemeral_for)} sees this</span>`}</p>
      ${body(message)}
      ${replies.length > 0 && html`<div class="thread">${replies.map((reply) => html`<div class="reply"><p class="byline"><strong>countersign</strong> ${time(reply.ts)}</p>${body(reply)}</div>`)}</div>`}
    </div>
  </article>`;
}

/** The end of a permalink; on the page, the place of the message. */
export const placeOf = (channel: string, ts: string): string => `${channel}/p${ts.replace('.', '')}`;
const PERMALINK = /^https:\/\/[\w-]+\.slack\.com\/archives\//;

const nameOf = (user: string): string => USERS.find(({ id }) => id === user)?.real_name ?? user;

function body(message: SlackMessage): SafeHtml {
  const blocks = message.blocks ?? [];
  if (blocks.length === 0) return html`<div>${mrkdwn(message.text)}</div>`;
  return html`<div class="blocks">${blocks.map((block) => blockHtml(block, message))}</div>`;
}

function time(ts: string): SafeHtml {
  return html`<time datetime="${new Date(Number(ts) * 1000).toISOString()}"></time>`;
}

function textHtml(text: unknown): SafeHtml {
  return fieldsOf(text).type === 'mrkdwn' ? mrkdwn(textIn(text)) : html`${textIn(text)}`;
}

/** `message` is absent in a modal, which has only the buttons of its form. */
function blockHtml(block: Block, message?: SlackMessage): SafeHtml {
  const elements = Array.isArray(block.elements) ? block.elements.map(fieldsOf) : [];
  switch (block.type) {
    case 'header':
      return html`<h4>${textIn(block.text)}</h4>`;
    case 'divider':
      return html`<hr>`;
    case 'section':
      return sectionHtml(block, message);
    case 'context':
      return html`<p class="context">${elements.map((element) => html`<span>${textHtml(element)}</span>`)}</p>`;
    case 'actions':
      return html`<div class="actions">${elements.map((element) => elementHtml(element, block, message))}</div>`;
    case 'rich_text':
      return html`<div class="rich">${elements.map(richPartHtml)}</div>`;
    case 'input':
      return inputHtml(block);
    default:
      return html`<p class="context">A block of type “${textOf(block.type)}” is not shown here.</p>`;
  }
}

/** Rich text is shown without interpreting any markup in it. */
function richPartHtml(part: Record<string, unknown>): SafeHtml {
  const elements = Array.isArray(part.elements) ? part.elements.map(fieldsOf) : [];
  if (part.type === 'rich_text_preformatted') return html`<pre>${elements.map(richElementHtml)}</pre>`;
  return html`<div class="prose">${elements.map(richElementHtml)}</div>`;
}

function richElementHtml({ type, text, style, fallback, url }: Record<string, unknown>): SafeHtml {
  if (type === 'date') return html`${textOf(fallback)}`;
  if (type === 'link') return linkHtml(textOf(url), textOf(text));
  const { bold, italic, code } = fieldsOf(style);
  if (code) return html`<code>${textOf(text)}</code>`;
  if (bold) return html`<strong>${textOf(text)}</strong>`;
  return italic ? html`<em>${textOf(text)}</em>` : html`${textOf(text)}`;
}

/** A permalink leads to the message on this page. */
function linkHtml(url: string, text: string): SafeHtml {
  if (PERMALINK.test(url)) return html`<a href="${url.replace(PERMALINK, '#')}">${text}</a>`;
  return /^https?:\/\//.test(url)
    ? html`<a href="${url}" target="_blank" rel="noreferrer">${text || url}</a>`
    : html`${text || url}`;
}

function sectionHtml(block: Block, message?: SlackMessage): SafeHtml {
  const fields = Array.isArray(block.fields) ? block.fields : [];
  const accessory = block.accessory === undefined ? undefined : fieldsOf(block.accessory);
  return html`<div class="section"><div>
    ${block.text !== undefined && html`<div>${textHtml(block.text)}</div>`}
    ${fields.length > 0 && html`<div class="fields">${fields.map((field) => html`<div>${textHtml(field)}</div>`)}</div>`}
  </div>${accessory && elementHtml(accessory, block, message)}</div>`;
}

function elementHtml(element: Record<string, unknown>, block: Block, message?: SlackMessage): SafeHtml {
  if (element.type !== 'button' || !message) {
    return html`<span class="quiet">An element of type “${textOf(element.type)}” is not shown here.</span>`;
  }
  const confirm = fieldsOf(element.confirm);
  const question = [textIn(confirm.title), textIn(confirm.text)].filter(Boolean).join('\n\n');
  return html`<button type="button" class="${textOf(element.style)}" data-channel="${message.channel}" data-ts="${message.ts}"
    data-block="${textOf(block.block_id)}" data-action="${textOf(element.action_id)}" data-confirm="${question}"
    data-url="${textOf(element.url)}">${textIn(element.text)}</button>`;
}

/** The form of a modal. The page shows it only to the person who opened it. */
export function modalForm({ id, view }: SlackView): SafeHtml {
  const blocks = Array.isArray(view.blocks) ? view.blocks.map(fieldsOf) : [];
  return html`<form method="dialog" data-view="${id}">
    <h3>${textIn(view.title)}</h3>
    <div class="blocks">${blocks.map((block) => blockHtml(block))}</div>
    <p class="form-error" role="alert" hidden></p>
    <div class="actions end">
      <button type="button" data-dismiss>${textIn(view.close) || 'Cancel'}</button>
      ${view.submit !== undefined && html`<button type="submit" class="primary">${textIn(view.submit)}</button>`}
    </div>
  </form>`;
}

function inputHtml(block: Block): SafeHtml {
  const input = toInput(block);
  const name = html`data-input-block="${input.block_id}" data-input-action="${input.action_id}"`;
  const required = input.optional ? html`` : html` required`;
  let control: SafeHtml;
  if (input.options.length > 0) {
    const options = input.options.map(
      ({ value, text }) =>
        html`<option value="${value}"${value === input.initial && html` selected`}>${textIn(text)}</option>`,
    );
    control = html`<select ${name}${required}><option value="">${input.placeholder || 'Choose…'}</option>${options}</select>`;
  } else if (input.multiline) {
    control = html`<textarea rows="4" ${name}${required} placeholder="${input.placeholder}">${input.initial}</textarea>`;
  } else {
    control = html`<input type="text" ${name}${required} placeholder="${input.placeholder}" value="${input.initial}">`;
  }
  return html`<label class="input"><span>${input.label}${input.optional && html` <span class="quiet">(optional)</span>`}</span>${control}
    ${input.hint !== '' && html`<span class="quiet">${input.hint}</span>`}<span class="field-error" data-error-for="${input.block_id}" role="alert"></span></label>`;
}
