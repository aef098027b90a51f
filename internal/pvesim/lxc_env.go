package pvesim

import "strings"

// storedEnv is what comes back of an environment that went through the file. It is kept there as one line
// a variable, so blanks at the end of a value are lost. Text beyond Latin-1 is written as UTF-8 and read
// back byte by byte.
func storedEnv(env string) string {
	variables := strings.Split(env, "\x00")
	for i, v := range variables {
		variables[i] = strings.TrimRight(v, " \t")
	}
	env = strings.Join(variables, "\x00")
	if !strings.ContainsFunc(env, func(r rune) bool { return r > 0xff }) {
		return env
	}
	var b strings.Builder
	for _, octet := range []byte(env) {
		b.WriteRune(rune(octet))
	}
	return b.String()
}
