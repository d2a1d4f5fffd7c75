package hub

// FeaturePresence is presence frames and pings that vouch for them on a relay.
const FeaturePresence = "presence/1"
