package archtest

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Read returns the import graph of the module whose root is fsys, from the source text: every build tag and
// every platform counts. Test files, testdata, hidden folders and nested modules are left out. It fails on a
// file that cannot be read or parsed.
func Read(fsys fs.FS) (Graph, error) {
	graph := Graph{}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(fsys, name)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		imports, err := importsOf(fsys, name)
		if err != nil {
			return err
		}
		pkg := path.Dir(name)
		graph[pkg] = append(graph[pkg], imports...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the import graph: %w", err)
	}
	for pkg, imports := range graph {
		slices.Sort(imports)
		graph[pkg] = slices.Compact(imports)
	}
	return graph, nil
}

func enter(fsys fs.FS, folder string) error {
	if folder == "." {
		return nil
	}
	base := path.Base(folder)
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	switch _, err := fs.Stat(fsys, path.Join(folder, "go.mod")); {
	case err == nil:
		return fs.SkipDir
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}

func importsOf(fsys fs.FS, name string) ([]string, error) {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	imports := make([]string, 0, len(file.Imports))
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		imports = append(imports, path)
	}
	return imports, nil
}
