/**
 * Of requests that other systems sign. Most have a few kilobytes; a push of 2,048 commits has 1.1 MB, and a submitted Slack modal
 * contains all fields twice, escaped for JSON and for the form. Lambda accepts 6 MB, in which the body is a JSON string with two
 * bytes for every quotation mark.
 */
export const SIGNED_BODY_MAX_BYTES = 4 * 1024 * 1024;
