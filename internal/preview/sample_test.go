//go:build !race

package preview

// stride says how many of the combinations are tried: all of them.
const stride = 1
