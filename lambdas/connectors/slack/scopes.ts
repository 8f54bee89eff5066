/** The bot scopes of the Slack app: cards, the channels and messages in which they are found again, direct messages, slash commands. */
export const SLACK_BOT_SCOPES = [
  'chat:write',
  'channels:read',
  'groups:read',
  'channels:history',
  'groups:history',
  'metadata.message:read',
  'im:write',
  'im:history',
  'commands',
] as const;
