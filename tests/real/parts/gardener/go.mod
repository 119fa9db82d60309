module parts/gardener

go 1.25.6

require github.com/gardener/gardener v1.138.0

replace github.com/gardener/gardener/pkg/apis => github.com/gardener/gardener/pkg/apis v1.138.0
