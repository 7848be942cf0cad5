"""Check of decision tables: cells, hit policies, and findings of the analysis. Lowers tables to existing IR forms."""
