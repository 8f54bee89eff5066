import type { CountersignError } from '../../run/errors.ts';
import { OutcomeUnknown, RATE_LIMIT_PAUSE_MS, TargetRefused } from '../target-errors.ts';

/**
 * The documented errors of the methods in use: chat.getPermalink, chat.postMessage, chat.update, conversations.history,
 * conversations.open, conversations.replies, users.conversations, views.open. Messages never quote an unlisted error, because its text is
 * not trusted.
 */

/** A later attempt may succeed. */
const RETRYABLE = `ratelimited rate_limited message_limit_exceeded service_unavailable request_timeout team_added_to_org
  org_login_required external_channel_migrating streaming_state_conflict`.split(/\s+/);

/** Part of the operation may have succeeded. */
const OUTCOME_UNKNOWN = ['internal_error', 'fatal_error', 'update_failed'];

/** Only an admin of the workspace or the app can fix these. */
const FOR_THE_ADMIN =
  `access_denied accesslimited account_inactive app_access_restricted as_user_not_supported channel_is_limited_access
  ekm_access_denied enterprise_is_restricted invalid_auth is_bot messages_tab_disabled metadata_must_be_sent_from_app
  missing_scope no_permission not_allowed_token_type not_authed restricted_action restricted_action_non_threadable_channel
  restricted_action_read_only_channel restricted_action_thread_locked restricted_action_thread_only_channel
  slack_connect_canvas_sharing_blocked slack_connect_file_link_sharing_blocked slack_connect_lists_sharing_blocked
  team_access_not_granted team_not_found token_expired token_revoked two_factor_setup_required`.split(/\s+/);

/** The same request would fail again. */
const FINAL = `block_mismatch cannot_reply_to_message cant_broadcast_message cant_update_message channel_not_found
  deprecated_endpoint duplicate_channel_not_found duplicate_message_not_found edit_window_closed exchanged_trigger_id
  expired_trigger_id invalid_arg_name invalid_arguments invalid_array_arg invalid_blocks invalid_blocks_format
  invalid_charset invalid_cursor invalid_form_data invalid_json invalid_limit invalid_metadata_format
  invalid_metadata_schema invalid_post_type invalid_trigger_id invalid_ts_latest invalid_ts_oldest invalid_types
  is_archived is_inactive message_not_found metadata_too_large method_deprecated method_not_supported_for_channel_type
  missing_argument missing_post_type msg_blocks_too_long msg_too_long no_text not_in_channel thread_not_found
  too_many_attachments unknown_method user_disabled user_not_found user_not_visible view_too_large`.split(/\s+/);

const WHAT_TO_DO: Readonly<Record<string, string>> = {
  channel_not_found: 'check the channel, and invite the app to it if it is private',
  not_in_channel: 'invite the app to the channel',
  is_archived: 'the channel is archived; use another channel',
  message_not_found: 'check channel and ts',
  missing_scope:
    'run "countersign connections test slack", which lists the missing scopes; add them to the app and reinstall it',
  token_expired: 'tokens that expire are not supported; see docs/administration.md, "Credentials"',
};
const ASK_ADMIN = 'ask an admin of the Slack workspace, or of the app, to allow it';

/** The error for a response `{ok: false, error}`. */
export function slackError(error: string, method: 'GET' | 'POST'): CountersignError {
  if (OUTCOME_UNKNOWN.includes(error)) {
    const message = `Slack failed (${error})`;
    return method === 'POST' ? new OutcomeUnknown(message) : new TargetRefused(message, { retryable: true });
  }
  if (RETRYABLE.includes(error)) {
    return new TargetRefused(`Slack refused for now (${error})`, {
      retryable: true,
      retryAfterMs: RATE_LIMIT_PAUSE_MS,
    });
  }
  const isKnown = FINAL.includes(error) || FOR_THE_ADMIN.includes(error);
  const todo = WHAT_TO_DO[error] ?? (FOR_THE_ADMIN.includes(error) ? ASK_ADMIN : undefined);
  const name = isKnown ? error : 'an unknown error';
  return new TargetRefused(`Slack refused (${name})${isKnown && todo ? `: ${todo}` : ''}`, { retryable: false });
}
