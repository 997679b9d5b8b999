# The image of the coordinator and of agents: the command `waggle` and nothing that built it.

FROM node:20-alpine AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No dependency needs an install script, and our own would build before the sources are here.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY machines machines
COPY src src
COPY scripts/build.ts scripts/
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:20-alpine
ENV NODE_ENV=production
WORKDIR /app
COPY package.json ./
COPY bin bin
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
# Belongs to the image's unprivileged user; whoever runs an agent on files mounts them here.
WORKDIR /swarm
RUN chown node:node /swarm
USER node
ENTRYPOINT ["node", "/app/bin/waggle.js"]
CMD ["--help"]
