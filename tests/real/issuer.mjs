// A real OpenID provider on loopback: `node issuer.mjs MODULES CONFIG`, with the configuration as
// JSON. Its keys live as long as the process. Whoever types a name is that person; the groups of
// people and of programs stand in the configuration. It is for tests: no password is asked for.
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [modules, file] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`));
const { port, page, secret, key, groups } = JSON.parse(readFileSync(file, 'utf8'));

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const signing = { ...privateKey.export({ format: 'jwk' }), kid: key, alg: 'RS256', use: 'sig' };

const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys: [signing] },
  cookies: { keys: ['of no worth beyond a test'] },
  clients: [
    {
      client_id: 'page', client_secret: secret,
      redirect_uris: [`${page}/login/callback`], post_logout_redirect_uris: [`${page}/`],
    },
    {
      client_id: 'program', client_secret: secret, grant_types: ['client_credentials'],
      redirect_uris: [], response_types: [],
    },
  ],
  pkce: { required: () => true },
  conformIdTokenClaims: false,
  claims: { openid: ['sub', 'groups'] },
  findAccount: (ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, groups: groups[id] ?? [] }),
  }),
  // Whoever logs in agrees: consent is not what is tested.
  async loadExistingGrant(ctx) {
    const { client, session } = ctx.oidc;
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope('openid profile email');
    await grant.save();
    return grant;
  },
  interactions: { url: (ctx, interaction) => `/people/${interaction.uid}` },
  extraTokenClaims: (ctx, token) => ({ groups: groups[token.clientId] ?? [] }),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      // A token is for whom it is asked for: urn:fleetd becomes the audience fleetd.
      getResourceServerInfo: (ctx, resource) => ({
        scope: '', audience: resource.slice('urn:'.length), accessTokenFormat: 'jwt',
        accessTokenTTL: 300, jwt: { sign: { alg: 'RS256' } },
      }),
    },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: (ctx, form) => {
        ctx.body = `${head}<p>Log out?</p>${form}<button form="op.logoutForm" name="logout" value="yes">Yes</button>`;
      },
    },
  },
});

const head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Issuer</title><link rel="icon" href="data:,"><h1>Issuer</h1>';

provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/people/')) return next();
  if (ctx.method === 'POST') {
    let body = '';
    for await (const chunk of ctx.req) body += chunk;
    const accountId = new URLSearchParams(body).get('name');
    return provider.interactionFinished(ctx.req, ctx.res, { login: { accountId } });
  }
  ctx.body = `${head}<form method="post"><label>Name <input name="name"></label> <button>Log in</button></form>`;
  return undefined;
});

provider.listen(port, '127.0.0.1', () => console.log('ready'));
