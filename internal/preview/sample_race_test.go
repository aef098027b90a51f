//go:build race

package preview

// stride says how many of the combinations are tried: the race detector makes each ten times as slow, and nothing here runs
// concurrently, so that every 13th is enough. 13 divides none of the dimensions.
const stride = 13
