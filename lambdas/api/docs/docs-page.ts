/** The whole page is from this API: no other host, no inline script, no inline style. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // The icons of the style sheet.
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export const DOCS_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Countersign API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="docs"></div>
<noscript>This page needs JavaScript. The document itself: <a href="openapi.json">openapi.json</a></noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

/** Without \`validatorUrl\`, the page would send the document to a server of Swagger. */
export const START_SCRIPT = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#docs',
  validatorUrl: null,
  queryConfigEnabled: false,
  deepLinking: true,
  docExpansion: 'none',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
});
`;
