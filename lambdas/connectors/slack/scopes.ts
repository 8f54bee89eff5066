/** The bot scopes of the Slack app: cards, the channels and messages in which they are found again, direct messages, slash commands. */
export const SLACK_BOT_SCOPES = [
  'chat:write',
  'channels:read',
  'groups:read',
  'channels:history',
  'groups:history',
  'metadata.message:read',
  'app_mentions:read',
  'im:write',
  'im:history',
  'commands',
] as const;

/** The events that the app receives: messages to it, and messages in the channels where it is a member. */
export const SLACK_BOT_EVENTS = ['app_mention', 'message.channels', 'message.groups', 'message.im'] as const;
