import fc from 'fast-check';
import { anyCharacter } from '../fakes/any-character.ts';

/** Known tricks to make a card show something else. */
export const TRICKS = [
  '*bold* _italic_ ~gone~ `code` ```block```',
  '<!channel> <!here> @channel @everyone <@U100ANA>',
  '<https://evil.example|https://acme.example/approve> https://evil.example',
  ':white_check_mark: Approved by Ana Ortiz',
  'safe\u202Egnp.exe\u202C',
  'zero\u200Bwidth\u200D\uFEFF\u2060\u00AD',
  '\u2066isolate\u2069 \u061C \u200E\u200F',
  'tag\u{E0041}\u{E0001} variation\uFE0E filler\u3164\uFFA0',
  'a\nb\r\nc\u2028d\u2029e\u0085f\tg\u0000h\u001B[31m',
  'Z\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307algo',
  '⟦U+202E⟧ ↵ … 2,412 more characters',
  '\u2800\u00A0\u3000\u2003wide',
  'שלום עולם مرحبا',
  '{"type":"section","text":{"type":"mrkdwn","text":"<!here>"}}',
  '\uD83D alone \uDE00',
  '&lt;!here&gt; &amp; < > &',
  '"\\'.repeat(200),
];

/** Any text, with some of the tricks. */
export const hostileText = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 200 }),
  fc.constantFrom(...TRICKS),
  fc.array(fc.constantFrom(...TRICKS), { minLength: 1, maxLength: 60 }).map((tricks) => tricks.join(' ')),
);

/** Characters that a card may contain only in escaped form, or to isolate right-to-left text. */
export const UNSEEN = /[\p{Cc}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/u;
