# What is half done in this cluster, who holds what, and what to do about it. Needs nothing but the provider block.
data "pvrx_operations" "all" {}

output "half_done" {
  value = data.pvrx_operations.all.summary
}

output "what_to_do" {
  value = { for o in data.pvrx_operations.all.operations : o.guest => o.remedy }
}

# Every plan warns as long as anything is left.
check "nothing_is_half_done" {
  assert {
    condition     = length(data.pvrx_operations.all.operations) == 0
    error_message = data.pvrx_operations.all.summary
  }
}
