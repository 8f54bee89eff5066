import type { Block } from '../../lambdas/slack/block-kit.ts';

export interface ShownText {
  text: string;
  /** How the text is displayed: as the card's own text, as a quotation, or as plain text. */
  as: 'words' | 'code' | 'box' | 'plain';
}

/** Every text that the blocks display, in order. */
export function shownTexts(blocks: readonly Block[]): ShownText[] {
  return blocks.flatMap(textsOf);
}

function textsOf(block: Block): ShownText[] {
  switch (block.type) {
    case 'rich_text':
      return block.elements.flatMap((part) =>
        part.elements.map((element): ShownText => {
          if (element.type === 'date') return { text: element.fallback, as: 'words' };
          if (element.type === 'link') return { text: element.text, as: 'words' };
          if (part.type === 'rich_text_preformatted') return { text: element.text, as: 'box' };
          return { text: element.text, as: element.style && 'code' in element.style ? 'code' : 'words' };
        }),
      );
    case 'header':
    case 'section':
      return [{ text: block.text.text, as: 'plain' }];
    case 'input':
      return [{ text: block.label.text, as: 'plain' }];
    case 'context':
      return block.elements.map(({ text }) => ({ text, as: 'plain' }));
    case 'actions':
      return block.elements.map(({ text }) => ({ text: text.text, as: 'plain' }));
  }
}

export const readable = (blocks: readonly Block[]): string =>
  shownTexts(blocks)
    .map(({ text }) => text)
    .join('');

export const buttonsOf = (blocks: readonly Block[]): string[] =>
  blocks.flatMap((block) => (block.type === 'actions' ? block.elements.map(({ text }) => text.text) : []));
